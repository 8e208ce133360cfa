*** Settings ***
Documentation    Open vSwitch with DPDK forwards without connection tracking.
...
...              The baseline that shows what connection tracking costs.

Resource         ../../resources/ovs_dpdk.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Of OVS-DPDK Should Meet SLA

Test Tags        ovs-dpdk    forward    cps    pps    1cpu    1rxq

Name             Without Conntrack


*** Test Cases ***                                  RULESET    PMD CPUS    RX QUEUES    PROFILE
No Conntrack, 1 CPU, 1 Queue, Short-Lived           forward    1           1            short-lived
    [Tags]    short-lived
No Conntrack, 1 CPU, 1 Queue, Long-Lived            forward    1           1            long-lived
    [Tags]    long-lived
