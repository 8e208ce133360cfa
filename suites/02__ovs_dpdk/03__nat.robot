*** Settings ***
Documentation    Open vSwitch with DPDK translates the clients' addresses (SNAT) while it tracks their connections.

Resource         ../../resources/ovs_dpdk.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Of OVS-DPDK Should Meet SLA

Test Tags        ovs-dpdk    conntrack    nat    cps    pps    1cpu    1rxq

Name             SNAT


*** Test Cases ***                          RULESET    PMD CPUS    RX QUEUES    PROFILE
SNAT, 1 CPU, 1 Queue, Short-Lived           nat        1           1            short-lived
    [Tags]    short-lived
SNAT, 1 CPU, 1 Queue, Long-Lived            nat        1           1            long-lived
    [Tags]    long-lived
