*** Settings ***
Documentation    The Linux kernel forwards packets of connections that a client began, and drops everything else.
...
...              Rules of iptables and of nftables. Each is promised a ratio to another topology, side by side:
...              iptables to forwarding without connection tracking, nftables to iptables, and a flowtable, whose
...              packets are not routed any more, to nftables. Frames have 64 bytes.
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2019.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    router    conntrack    stateful    pps    ratio

Name             Stateful Firewall


*** Test Cases ***                                DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, 1 Flow                         linux-router    iptables-stateful    1       1            udp-64-1flow
    [Tags]    iptables    1cpu    1rxq    1flow    one-way
Stateful iptables, 10k Flows                      linux-router    iptables-stateful    1       1            udp-64-10k
    [Tags]    iptables    1cpu    1rxq    10kflows    one-way    acceptance
Stateful iptables, 10k Flows, Both Ways           linux-router    iptables-stateful    1       1            udp-64-10k-both
    [Tags]    iptables    1cpu    1rxq    10kflows    both-ways
Stateful iptables, 1 CPU, 2 Queues, 10k Flows     linux-router    iptables-stateful    1       2            udp-64-10k
    [Tags]    iptables    1cpu    2rxq    10kflows    one-way
Stateful iptables, 2 CPUs, 2 Queues, 10k Flows    linux-router    iptables-stateful    2       2            udp-64-10k
    [Tags]    iptables    2cpu    2rxq    10kflows    one-way    acceptance
Stateful iptables, 4 CPUs, 4 Queues, 10k Flows    linux-router    iptables-stateful    4       4            udp-64-10k
    [Tags]    iptables    4cpu    4rxq    10kflows    one-way    acceptance
Stateful iptables, 8 CPUs, 8 Queues, 10k Flows    linux-router    iptables-stateful    8       8            udp-64-10k
    [Tags]    iptables    8cpu    8rxq    10kflows    one-way    acceptance
Stateful nftables, 1 Flow                         linux-router    nftables-stateful    1       1            udp-64-1flow
    [Tags]    nftables    1cpu    1rxq    1flow    one-way    not-quick
Stateful nftables, 10k Flows                      linux-router    nftables-stateful    1       1            udp-64-10k
    [Tags]    nftables    1cpu    1rxq    10kflows    one-way    acceptance
Stateful nftables, 10k Flows, Both Ways           linux-router    nftables-stateful    1       1            udp-64-10k-both
    [Tags]    nftables    1cpu    1rxq    10kflows    both-ways    not-quick
Flowtable, nftables, 10k Flows, Both Ways         linux-router    nftables-flowtable   1       1            udp-64-10k-both
    [Tags]    nftables    flowtable    1cpu    1rxq    10kflows    both-ways    nightly
