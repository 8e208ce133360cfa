*** Settings ***
Documentation    Open vSwitch with DPDK forwards without connection tracking.
...
...              The baseline that shows what connection tracking costs.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Connection Rate

Test Tags        pps

Name             Without Conntrack


*** Test Cases ***                           DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
No Conntrack, 1 CPU, 1 Queue, Short-Lived    ovs-dpdk    forward    1       1            short-lived
No Conntrack, 1 CPU, 1 Queue, Long-Lived     ovs-dpdk    forward    1       1            long-lived
