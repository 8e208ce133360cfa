*** Settings ***
Documentation    How many connections per second the Linux kernel sets up and takes down.
...
...              Complete TCP connections (and 1 % UDP) through forwarding, stateful rules and NAT.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Connection Rate

Name             New Connections


*** Test Cases ***                                   DATAPATH        RULESET                CPUS    RX QUEUES    PROFILE
Forwarding, Short-Lived Connections                  linux-router    forward                1       1            short-lived
    [Tags]    forwarding
Stateful iptables, Short-Lived Connections           linux-router    iptables-stateful      1       1            short-lived
Stateful nftables, Short-Lived Connections           linux-router    nftables-stateful      1       1            short-lived
SNAT With iptables, Short-Lived Connections          linux-router    iptables-snat          1       1            short-lived
SNAT With nftables, Short-Lived Connections          linux-router    nftables-snat          1       1            short-lived
DNAT With iptables, Short-Lived Connections          linux-router    iptables-dnat          1       1            short-lived
Masquerade With iptables, Short-Lived Connections    linux-router    iptables-masquerade    1       1            short-lived
Stateful iptables, Long-Lived Connections            linux-router    iptables-stateful      1       1            long-lived
