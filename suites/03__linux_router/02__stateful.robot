*** Settings ***
Documentation    The Linux kernel forwards what belongs to a connection that a client began, and drops everything else.
...
...              Rules of iptables and of nftables. Each has a floor of its own and one relative to another topology:
...              iptables to forwarding without connection tracking, nftables to iptables. Frames have 64 bytes.

Resource         ../../resources/linux.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Of Linux Router Should Meet SLA

Test Tags        linux    router    stateful    conntrack    pps

Name             Stateful Firewall


*** Test Cases ***                                RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, 1 Flow                         iptables-stateful    1       1            udp-64-1flow
    [Tags]    1cpu    1rxq    1flow    one-way    iptables
Stateful iptables, 10k Flows                      iptables-stateful    1       1            udp-64-10k
    [Tags]    1cpu    1rxq    10kflows    one-way    iptables
Stateful iptables, 10k Flows, Both Ways           iptables-stateful    1       1            udp-64-10k-both
    [Tags]    1cpu    1rxq    10kflows    both-ways    iptables
Stateful iptables, 1 CPU, 2 Queues, 10k Flows     iptables-stateful    1       2            udp-64-10k
    [Tags]    1cpu    2rxq    10kflows    one-way    iptables
Stateful iptables, 2 CPUs, 2 Queues, 10k Flows    iptables-stateful    2       2            udp-64-10k
    [Tags]    2cpu    2rxq    10kflows    one-way    iptables
Stateful iptables, 4 CPUs, 4 Queues, 10k Flows    iptables-stateful    4       4            udp-64-10k
    [Tags]    4cpu    4rxq    10kflows    one-way    iptables
Stateful iptables, 8 CPUs, 8 Queues, 10k Flows    iptables-stateful    8       8            udp-64-10k
    [Tags]    8cpu    8rxq    10kflows    one-way    iptables
Stateful nftables, 1 Flow                         nftables-stateful    1       1            udp-64-1flow
    [Tags]    1cpu    1rxq    1flow    one-way    nftables
Stateful nftables, 10k Flows                      nftables-stateful    1       1            udp-64-10k
    [Tags]    1cpu    1rxq    10kflows    one-way    nftables
Stateful nftables, 10k Flows, Both Ways           nftables-stateful    1       1            udp-64-10k-both
    [Tags]    1cpu    1rxq    10kflows    both-ways    nftables
