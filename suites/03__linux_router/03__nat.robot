*** Settings ***
Documentation    The Linux kernel translates addresses while it tracks connections.
...
...              SNAT and masquerading change the clients' addresses, DNAT the servers'. Each has a floor of its own and
...              one relative to another topology: iptables to forwarding without connection tracking, nftables to
...              iptables. Frames have 64 bytes.

Resource         ../../resources/linux.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Of Linux Router Should Meet SLA

Test Tags        linux    router    nat    conntrack    pps    1cpu    1rxq

Name             NAT


*** Test Cases ***                          RULESET                CPUS    RX QUEUES    PROFILE
SNAT With iptables, 1 Flow                  iptables-snat          1       1            udp-64-1flow
    [Tags]    1flow    one-way    snat    iptables
SNAT With iptables, 10k Flows               iptables-snat          1       1            udp-64-10k
    [Tags]    10kflows    one-way    snat    iptables
SNAT With iptables, 10k Flows, Both Ways    iptables-snat          1       1            udp-64-10k-both
    [Tags]    10kflows    both-ways    snat    iptables
SNAT With nftables, 1 Flow                  nftables-snat          1       1            udp-64-1flow
    [Tags]    1flow    one-way    snat    nftables
SNAT With nftables, 10k Flows               nftables-snat          1       1            udp-64-10k
    [Tags]    10kflows    one-way    snat    nftables
SNAT With nftables, 10k Flows, Both Ways    nftables-snat          1       1            udp-64-10k-both
    [Tags]    10kflows    both-ways    snat    nftables
DNAT With iptables, 10k Flows               iptables-dnat          1       1            udp-64-10k
    [Tags]    10kflows    one-way    dnat    iptables
DNAT With nftables, 10k Flows               nftables-dnat          1       1            udp-64-10k
    [Tags]    10kflows    one-way    dnat    nftables
Masquerade With iptables, 10k Flows         iptables-masquerade    1       1            udp-64-10k
    [Tags]    10kflows    one-way    masquerade    iptables
Masquerade With nftables, 10k Flows         nftables-masquerade    1       1            udp-64-10k
    [Tags]    10kflows    one-way    masquerade    nftables
