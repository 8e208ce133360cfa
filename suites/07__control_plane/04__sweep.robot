*** Settings ***
Documentation    The rules of Open vSwitch change ten times a second while traffic passes: each time it has to look at every
...              flow of its datapath again.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Sweep Its Flows In Time

Name             Revalidation Sweep


*** Test Cases ***                        DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
Sweep, 10 000 Flows, 1 Revalidator        ovs-dpdk    flow-each        1       1            udp-64-10k     revalidators=1
Sweep, 50 000 Flows, 1 Revalidator        ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=1
Sweep, 50 000 Flows, 2 Revalidators       ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=2
Sweep, 50 000 Flows, 4 Revalidators       ovs-dpdk    flow-each        1       1            udp-64-50k     revalidators=4
Sweep, 200 000 Flows, 1 Revalidator       ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=1
Sweep, 200 000 Flows, 2 Revalidators      ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=2
Sweep, 200 000 Flows, 4 Revalidators      ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=4
Sweep, 200 000 Flows, 32 Revalidators     ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=32
Sweep, 200 000 Flows, 128 Revalidators    ovs-dpdk    flow-each        1       1            udp-64-200k    revalidators=128
Sweep, Conntrack, 1 Revalidator           ovs-dpdk    flow-each-ct     1       1            udp-64-50k     revalidators=1
Sweep, NAT, 1 Revalidator                 ovs-dpdk    flow-each-nat    1       1            udp-64-50k     revalidators=1
