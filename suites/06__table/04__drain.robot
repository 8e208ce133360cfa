*** Settings ***
Documentation    How fast the connection table drains.
...
...              Connections are opened, asked a message and left. No entry may go before its timeout of 5 s.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Drain Time Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    drain

Name             Table Drain


*** Test Cases ***          DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Drain, Open vSwitch         ovs-dpdk        conntrack            1       1            held       timeout_s=5
    [Tags]    ovs    ovs-dpdk
Drain, Stateful iptables    linux-router    iptables-stateful    1       1            held       timeout_s=5
    [Tags]    linux    router    stateful    iptables    nightly
