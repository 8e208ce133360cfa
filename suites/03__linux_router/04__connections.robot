*** Settings ***
Documentation    How many connections per second the Linux kernel sets up and takes down.
...
...              Whole TCP connections (and 1 % UDP) through forwarding, stateful rules and NAT.

Resource         ../../resources/linux.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Of Linux Router Should Meet SLA

Test Tags        linux    router    cps    1cpu    1rxq

Name             New Connections


*** Test Cases ***                                   RULESET                CPUS    RX QUEUES    PROFILE
Forwarding, Short-Lived Connections                  forward                1       1            short-lived
    [Tags]    short-lived    forwarding
Stateful iptables, Short-Lived Connections           iptables-stateful      1       1            short-lived
    [Tags]    short-lived    stateful    iptables
Stateful nftables, Short-Lived Connections           nftables-stateful      1       1            short-lived
    [Tags]    short-lived    stateful    nftables
SNAT With iptables, Short-Lived Connections          iptables-snat          1       1            short-lived
    [Tags]    short-lived    nat    snat    iptables
SNAT With nftables, Short-Lived Connections          nftables-snat          1       1            short-lived
    [Tags]    short-lived    nat    snat    nftables
DNAT With iptables, Short-Lived Connections          iptables-dnat          1       1            short-lived
    [Tags]    short-lived    nat    dnat    iptables
Masquerade With iptables, Short-Lived Connections    iptables-masquerade    1       1            short-lived
    [Tags]    short-lived    nat    masquerade    iptables
Stateful iptables, Long-Lived Connections            iptables-stateful      1       1            long-lived
    [Tags]    long-lived    stateful    iptables
