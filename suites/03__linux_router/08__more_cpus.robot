*** Settings ***
Documentation    The Linux kernel translates addresses, and filters with nftables, on more CPUs than one.
...
...              Each is promised a ratio to another topology of as many CPUs, side by side: SNAT with iptables to stateful
...              rules, nftables to iptables. Frames have 64 bytes.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    router    conntrack    pps    10kflows    one-way    ratio    nightly

Name             More CPUs


*** Test Cases ***                                DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Stateful nftables, 2 CPUs, 2 Queues, 10k Flows    linux-router    nftables-stateful    2       2            udp-64-10k
    [Tags]    stateful    nftables    2cpu    2rxq
Stateful nftables, 4 CPUs, 4 Queues, 10k Flows    linux-router    nftables-stateful    4       4            udp-64-10k
    [Tags]    stateful    nftables    4cpu    4rxq
Stateful nftables, 8 CPUs, 8 Queues, 10k Flows    linux-router    nftables-stateful    8       8            udp-64-10k
    [Tags]    stateful    nftables    8cpu    8rxq
SNAT With iptables, 2 CPUs, 2 Queues, 10k Flows   linux-router    iptables-snat        2       2            udp-64-10k
    [Tags]    nat    snat    iptables    2cpu    2rxq
SNAT With iptables, 4 CPUs, 4 Queues, 10k Flows   linux-router    iptables-snat        4       4            udp-64-10k
    [Tags]    nat    snat    iptables    4cpu    4rxq
SNAT With iptables, 8 CPUs, 8 Queues, 10k Flows   linux-router    iptables-snat        8       8            udp-64-10k
    [Tags]    nat    snat    iptables    8cpu    8rxq
SNAT With nftables, 2 CPUs, 2 Queues, 10k Flows   linux-router    nftables-snat        2       2            udp-64-10k
    [Tags]    nat    snat    nftables    2cpu    2rxq
SNAT With nftables, 4 CPUs, 4 Queues, 10k Flows   linux-router    nftables-snat        4       4            udp-64-10k
    [Tags]    nat    snat    nftables    4cpu    4rxq
SNAT With nftables, 8 CPUs, 8 Queues, 10k Flows   linux-router    nftables-snat        8       8            udp-64-10k
    [Tags]    nat    snat    nftables    8cpu    8rxq
