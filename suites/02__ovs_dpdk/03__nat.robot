*** Settings ***
Documentation    Open vSwitch with DPDK translates the clients' addresses (SNAT) while it tracks their connections.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    nat    snat    1cpu    1rxq    cps    pps    ratio    acceptance

Name             SNAT


*** Test Cases ***                   DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
SNAT, 1 CPU, 1 Queue, Short-Lived    ovs-dpdk    nat        1       1            short-lived
    [Tags]    short-lived
SNAT, 1 CPU, 1 Queue, Long-Lived     ovs-dpdk    nat        1       1            long-lived
    [Tags]    long-lived
