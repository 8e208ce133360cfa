*** Settings ***
Documentation    How many connections per second the Linux kernel sets up and takes down.
...
...              Complete TCP connections (and 1 % UDP) through forwarding, stateful rules and NAT.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        linux    router    1cpu    1rxq    cps    ratio

Name             New Connections


*** Test Cases ***                                   DATAPATH        RULESET                CPUS    RX QUEUES    PROFILE
Forwarding, Short-Lived Connections                  linux-router    forward                1       1            short-lived
    [Tags]    short-lived    baseline    forward    acceptance
Stateful iptables, Short-Lived Connections           linux-router    iptables-stateful      1       1            short-lived
    [Tags]    conntrack    stateful    iptables    short-lived    acceptance
Stateful nftables, Short-Lived Connections           linux-router    nftables-stateful      1       1            short-lived
    [Tags]    conntrack    stateful    nftables    short-lived    acceptance
SNAT With iptables, Short-Lived Connections          linux-router    iptables-snat          1       1            short-lived
    [Tags]    conntrack    nat    snat    iptables    short-lived    acceptance
SNAT With nftables, Short-Lived Connections          linux-router    nftables-snat          1       1            short-lived
    [Tags]    conntrack    nat    snat    nftables    short-lived    not-quick
DNAT With iptables, Short-Lived Connections          linux-router    iptables-dnat          1       1            short-lived
    [Tags]    conntrack    nat    dnat    iptables    short-lived    not-quick
Masquerade With iptables, Short-Lived Connections    linux-router    iptables-masquerade    1       1            short-lived
    [Tags]    conntrack    nat    masquerade    iptables    short-lived    not-quick
Flowtable, nftables, Short-Lived Connections         linux-router    nftables-flowtable     1       1            short-lived
    [Tags]    conntrack    stateful    nftables    flowtable    short-lived    nightly
Flowtable, nftables, Long-Lived Connections          linux-router    nftables-flowtable     1       1            long-lived
    [Tags]    conntrack    stateful    nftables    flowtable    long-lived    nightly
Stateful iptables, Long-Lived Connections            linux-router    iptables-stateful      1       1            long-lived
    [Tags]    conntrack    stateful    iptables    long-lived
