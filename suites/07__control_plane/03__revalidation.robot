*** Settings ***
Documentation    Open vSwitch looks at all flows of its datapath, whether they are still right, while traffic keeps them
...              alive: at least twice a second by itself, and in a sweep whenever something of its rules changes.
...
...              Each flow of the profile is a flow of the datapath, of 50 000 flows that are tracked two. More
...              revalidators are faster where they have CPUs of their own.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Revalidation Time Should Meet SLA

Test Tags        ovs    ovs-dpdk    control-plane    1cpu    1rxq    revalidation    long

Name             Revalidation


*** Test Cases ***                               DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
Revalidation, 10 000 Flows, 1 Revalidator        ovs-dpdk    flow-each        1       1            udp-64-10k     revalidators=1
Revalidation, 50 000 Flows, 1 Revalidator        ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=1
Revalidation, 50 000 Flows, 2 Revalidators       ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=2
Revalidation, 50 000 Flows, 4 Revalidators       ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=4
Revalidation, 200 000 Flows, 1 Revalidator       ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=1
Revalidation, 200 000 Flows, 2 Revalidators      ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=2
Revalidation, 200 000 Flows, 4 Revalidators      ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=4
Revalidation, 200 000 Flows, 32 Revalidators     ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=32
Revalidation, 200 000 Flows, 128 Revalidators    ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=128
Revalidation, Conntrack, 1 Revalidator           ovs-dpdk    flow-each-ct     1       1            udp-64-50k     revalidators=1
    [Tags]    conntrack
Revalidation, NAT, 1 Revalidator                 ovs-dpdk    flow-each-nat    1       1            udp-64-50k     revalidators=1
    [Tags]    conntrack    nat    snat
Revalidation, 200 000 Rules, 4 Revalidators      ovs-dpdk    rule-each        1       1            udp-64-200k    revalidators=4
    [Tags]    nightly
Revalidation, 200 000 Flows, 2 CPUs, 2 Queues    ovs-dpdk    flow-each        2       2            udp-64-200k    revalidators=4
    [Tags]    2cpu    2rxq    -1cpu    -1rxq    nightly
Revalidation, 200 000 Flows, 4 CPUs, 4 Queues    ovs-dpdk    flow-each        4       4            udp-64-200k    revalidators=4
    [Tags]    4cpu    4rxq    -1cpu    -1rxq    nightly
Revalidation, 200 000 Flows, 8 CPUs, 8 Queues    ovs-dpdk    flow-each        8       8            udp-64-200k    revalidators=4
    [Tags]    8cpu    8rxq    -1cpu    -1rxq    nightly
