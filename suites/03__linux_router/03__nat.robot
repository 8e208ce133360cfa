*** Settings ***
Documentation    The Linux kernel translates addresses while it tracks connections.
...
...              SNAT and masquerading change the clients' addresses, DNAT the servers'. Each is promised
...              a ratio to another topology, side by side: SNAT and DNAT with iptables to stateful rules, masquerading
...              to SNAT, nftables to iptables. Frames have 64 bytes.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    router    conntrack    nat    1cpu    1rxq    pps    ratio

Name             NAT


*** Test Cases ***                          DATAPATH        RULESET                CPUS    RX QUEUES    PROFILE
SNAT With iptables, 1 Flow                  linux-router    iptables-snat          1       1            udp-64-1flow
    [Tags]    snat    iptables    1flow    one-way    not-quick
SNAT With iptables, 10k Flows               linux-router    iptables-snat          1       1            udp-64-10k
    [Tags]    snat    iptables    10kflows    one-way    acceptance
SNAT With iptables, 10k Flows, Both Ways    linux-router    iptables-snat          1       1            udp-64-10k-both
    [Tags]    snat    iptables    10kflows    both-ways    not-quick
SNAT With nftables, 1 Flow                  linux-router    nftables-snat          1       1            udp-64-1flow
    [Tags]    snat    nftables    1flow    one-way    not-quick
SNAT With nftables, 10k Flows               linux-router    nftables-snat          1       1            udp-64-10k
    [Tags]    snat    nftables    10kflows    one-way    acceptance
SNAT With nftables, 10k Flows, Both Ways    linux-router    nftables-snat          1       1            udp-64-10k-both
    [Tags]    snat    nftables    10kflows    both-ways    not-quick
DNAT With iptables, 10k Flows               linux-router    iptables-dnat          1       1            udp-64-10k
    [Tags]    dnat    iptables    10kflows    one-way    acceptance
DNAT With nftables, 10k Flows               linux-router    nftables-dnat          1       1            udp-64-10k
    [Tags]    dnat    nftables    10kflows    one-way    not-quick
Masquerade With iptables, 10k Flows         linux-router    iptables-masquerade    1       1            udp-64-10k
    [Tags]    masquerade    iptables    10kflows    one-way    acceptance
Masquerade With nftables, 10k Flows         linux-router    nftables-masquerade    1       1            udp-64-10k
    [Tags]    masquerade    nftables    10kflows    one-way    not-quick
