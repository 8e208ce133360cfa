*** Settings ***
Documentation    Open vSwitch with DPDK tracks connections in 64 zones, as OVN has one for each port; compared with one.
...
...              Floors: variables/sla/local.yaml. Promised of a candidate, compared with another build: of_build.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    zones    1cpu    1rxq    cps    pps    ratio    nightly

Name             Zones


*** Test Cases ***                       DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
64 Zones, 1 CPU, 1 Queue, Short-Lived    ovs-dpdk    zones      1       1            short-lived
    [Tags]    short-lived
64 Zones, 1 CPU, 1 Queue, Long-Lived     ovs-dpdk    zones      1       1            long-lived
    [Tags]    long-lived
