*** Settings ***
Documentation    What a NAT does when the ports of its address are used up, as those of an egress gateway.
...
...              All clients reach one server, so each connection takes a port of the NAT's one address until its entry
...              goes. New connections are timed with all ports free, and with half and nine tenths of them in use; then
...              more are opened than are left, those that are open are asked, and the table is emptied.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Port Exhaustion Should Meet SLA

Test Tags        table    conntrack    nat    snat    1cpu    1rxq    port-exhaustion

Name             Port Exhaustion


*** Test Cases ***                    DATAPATH        RULESET                   CPUS    RX QUEUES    PROFILE
Egress, Open vSwitch                  ovs-dpdk        egress                    1       1            egress         timeout_s=120
    [Tags]    ovs    ovs-dpdk
Egress, Open vSwitch, Random Ports    ovs-dpdk        egress-random             1       1            egress         timeout_s=120
    [Tags]    ovs    ovs-dpdk    nightly
Egress, IPv6, Open vSwitch            ovs-dpdk        egress-ipv6               1       1            egress-ipv6    timeout_s=120
    [Tags]    ovs    ovs-dpdk    ipv6    nightly
Egress, iptables                      linux-router    iptables-egress           1       1            egress         timeout_s=120
    [Tags]    linux    router    iptables    nightly
Egress, iptables, Random Ports        linux-router    iptables-egress-random    1       1            egress         timeout_s=120
    [Tags]    linux    router    iptables    nightly
Egress, nftables                      linux-router    nftables-egress           1       1            egress         timeout_s=120
    [Tags]    linux    router    nftables    nightly
Egress, nftables, Random Ports        linux-router    nftables-egress-random    1       1            egress         timeout_s=120
    [Tags]    linux    router    nftables    nightly
Egress, IPv6, nftables                linux-router    nftables-egress-ipv6      1       1            egress-ipv6    timeout_s=120
    [Tags]    linux    router    nftables    ipv6    nightly
Egress, IPv6, ip6tables               linux-router    ip6tables-egress          1       1            egress-ipv6    timeout_s=120
    [Tags]    linux    router    ip6tables    ipv6    nightly
