*** Settings ***
Documentation    Open vSwitch with DPDK tracks connections of IPv6: packets per second.
...
...              Compared with the same frames of IPv4, side by side.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Packet Rate

Test Tags        nightly

Name             IPv6


*** Test Cases ***              DATAPATH    RULESET           CPUS    RX QUEUES    PROFILE
IPv6, 128 Bytes, 10k Flows      ovs-dpdk    conntrack-ipv6    1       1            udp-128-10k-ipv6
