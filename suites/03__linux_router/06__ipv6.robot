*** Settings ***
Documentation    The Linux kernel forwards IPv6, and tracks its connections: packets per second.
...
...              Compared with the same frames and rules of IPv4, side by side.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    router    1cpu    1rxq    pps    ipv6    10kflows    128b    one-way    ratio    nightly

Name             IPv6


*** Test Cases ***                                 DATAPATH        RULESET                   CPUS    RX QUEUES    PROFILE
Forwarding, IPv6, 128 Bytes, 10k Flows             linux-router    forward-ipv6              1       1            udp-128-10k-ipv6
    [Tags]    baseline    forward
Stateful ip6tables, IPv6, 128 Bytes, 10k Flows     linux-router    ip6tables-stateful        1       1            udp-128-10k-ipv6
    [Tags]    conntrack    stateful    ip6tables
Stateful nftables, IPv6, 128 Bytes, 10k Flows      linux-router    nftables-stateful-inet    1       1            udp-128-10k-ipv6
    [Tags]    conntrack    stateful    nftables
