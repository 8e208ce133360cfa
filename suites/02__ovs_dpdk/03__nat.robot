*** Settings ***
Documentation    Open vSwitch with DPDK translates the clients' addresses (SNAT) while it tracks their connections.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Connection Rate

Test Tags        pps

Name             SNAT


*** Test Cases ***                   DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
SNAT, 1 CPU, 1 Queue, Short-Lived    ovs-dpdk    nat        1       1            short-lived
SNAT, 1 CPU, 1 Queue, Long-Lived     ovs-dpdk    nat        1       1            long-lived
