*** Settings ***
Documentation    Open vSwitch with DPDK forwards without connection tracking.
...
...              The baseline that shows what connection tracking costs.
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2022.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    forward    1cpu    1rxq    cps    pps    baseline    ratio    acceptance

Name             Without Conntrack


*** Test Cases ***                           DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
No Conntrack, 1 CPU, 1 Queue, Short-Lived    ovs-dpdk    forward    1       1            short-lived
    [Tags]    short-lived
No Conntrack, 1 CPU, 1 Queue, Long-Lived     ovs-dpdk    forward    1       1            long-lived
    [Tags]    long-lived
