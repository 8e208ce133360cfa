*** Settings ***
Documentation    The Linux kernel translates addresses while it tracks connections.
...
...              SNAT and masquerading change the clients' addresses, DNAT the servers'. Each is promised
...              a ratio to another topology, side by side: SNAT and DNAT with iptables to stateful rules, masquerading
...              to SNAT, nftables to iptables. Frames have 64 bytes.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Packet Rate

Name             NAT


*** Test Cases ***                          DATAPATH        RULESET                CPUS    RX QUEUES    PROFILE
SNAT With iptables, 1 Flow                  linux-router    iptables-snat          1       1            udp-64-1flow
SNAT With iptables, 10k Flows               linux-router    iptables-snat          1       1            udp-64-10k
SNAT With iptables, 10k Flows, Both Ways    linux-router    iptables-snat          1       1            udp-64-10k-both
SNAT With nftables, 1 Flow                  linux-router    nftables-snat          1       1            udp-64-1flow
SNAT With nftables, 10k Flows               linux-router    nftables-snat          1       1            udp-64-10k
SNAT With nftables, 10k Flows, Both Ways    linux-router    nftables-snat          1       1            udp-64-10k-both
DNAT With iptables, 10k Flows               linux-router    iptables-dnat          1       1            udp-64-10k
DNAT With nftables, 10k Flows               linux-router    nftables-dnat          1       1            udp-64-10k
Masquerade With iptables, 10k Flows         linux-router    iptables-masquerade    1       1            udp-64-10k
Masquerade With nftables, 10k Flows         linux-router    nftables-masquerade    1       1            udp-64-10k
