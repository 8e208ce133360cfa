*** Settings ***
Documentation    The rules of Open vSwitch change ten times a second while traffic passes: each time it has to look at every
...              flow of its datapath again.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Forced Revalidation Time Should Meet SLA

Test Tags        ovs    ovs-dpdk    control-plane    1cpu    1rxq    revalidation

Name             Revalidation Sweep


*** Test Cases ***                        DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
Sweep, 10 000 Flows, 1 Revalidator        ovs-dpdk    flow-each        1       1            udp-64-10k     revalidators=1
Sweep, 50 000 Flows, 1 Revalidator        ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=1
    [Tags]    long
Sweep, 50 000 Flows, 2 Revalidators       ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=2
    [Tags]    long
Sweep, 50 000 Flows, 4 Revalidators       ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=4
    [Tags]    long
Sweep, 200 000 Flows, 1 Revalidator       ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=1
    [Tags]    long
Sweep, 200 000 Flows, 2 Revalidators      ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=2
    [Tags]    long
Sweep, 200 000 Flows, 4 Revalidators      ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=4
    [Tags]    long
Sweep, 200 000 Flows, 32 Revalidators     ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=32
    [Tags]    long
Sweep, 200 000 Flows, 128 Revalidators    ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=128
    [Tags]    long
Sweep, Conntrack, 1 Revalidator           ovs-dpdk    flow-each-ct     1       1            udp-64-50k     revalidators=1
    [Tags]    conntrack    long
Sweep, NAT, 1 Revalidator                 ovs-dpdk    flow-each-nat    1       1            udp-64-50k     revalidators=1
    [Tags]    conntrack    nat    snat    long
