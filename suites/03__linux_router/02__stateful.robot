*** Settings ***
Documentation    The Linux kernel forwards packets of connections that a client began, and drops everything else.
...
...              Rules of iptables and of nftables. Each is promised a ratio to another topology, side by side:
...              iptables to forwarding without connection tracking, nftables to iptables. Frames have 64 bytes.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Packet Rate

Name             Stateful Firewall


*** Test Cases ***                                DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, 1 Flow                         linux-router    iptables-stateful    1       1            udp-64-1flow
Stateful iptables, 10k Flows                      linux-router    iptables-stateful    1       1            udp-64-10k
Stateful iptables, 10k Flows, Both Ways           linux-router    iptables-stateful    1       1            udp-64-10k-both
Stateful iptables, 1 CPU, 2 Queues, 10k Flows     linux-router    iptables-stateful    1       2            udp-64-10k
Stateful iptables, 2 CPUs, 2 Queues, 10k Flows    linux-router    iptables-stateful    2       2            udp-64-10k
Stateful iptables, 4 CPUs, 4 Queues, 10k Flows    linux-router    iptables-stateful    4       4            udp-64-10k
Stateful iptables, 8 CPUs, 8 Queues, 10k Flows    linux-router    iptables-stateful    8       8            udp-64-10k
Stateful nftables, 1 Flow                         linux-router    nftables-stateful    1       1            udp-64-1flow
Stateful nftables, 10k Flows                      linux-router    nftables-stateful    1       1            udp-64-10k
Stateful nftables, 10k Flows, Both Ways           linux-router    nftables-stateful    1       1            udp-64-10k-both
