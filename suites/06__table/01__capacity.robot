*** Settings ***
Documentation    How many connections are held at once.
...
...              Opened below the connection rate, kept open, and each asked a message in the end (RFC 9411, section 7.5).
...              The DUT's own count has to be the generator's, to the connection, before, between and after.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Held Connections Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    capacity    acceptance

Name             Table Capacity


*** Test Cases ***                     DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Connections Held, Open vSwitch         ovs-dpdk        conntrack            1       1            held       timeout_s=120
    [Tags]    ovs    ovs-dpdk
Connections Held, Stateful iptables    linux-router    iptables-stateful    1       1            held       timeout_s=120
    [Tags]    linux    router    stateful    iptables
