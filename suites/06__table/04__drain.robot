*** Settings ***
Documentation    How fast the connection table drains.
...
...              Connections are opened, asked a message and left. No entry may go before its timeout of 5 s. The first timeout
...              policy of a zone has no effect in Open vSwitch since 3.3 (docs/releases.md): its row asks for just that.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Drain Time Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    drain

Name             Table Drain


*** Test Cases ***                 DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Drain, Open vSwitch                ovs-dpdk        conntrack            1       1            held       timeout_s=5
    [Tags]    ovs    ovs-dpdk
Timeout Policy, First Of A Zone    ovs-dpdk        conntrack            1       1            held       timeout_s=5
    ...    zone_policy=first
    [Tags]    ovs    ovs-dpdk    timeout-policy
Drain, Stateful iptables           linux-router    iptables-stateful    1       1            held       timeout_s=5
    [Tags]    linux    router    stateful    iptables    nightly
