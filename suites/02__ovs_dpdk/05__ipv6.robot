*** Settings ***
Documentation    Open vSwitch with DPDK tracks connections of IPv6: packets per second.
...
...              Compared with the same frames of IPv4, side by side.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    1cpu    1rxq    pps    ipv6    nightly

Name             IPv6


*** Test Cases ***              DATAPATH    RULESET           CPUS    RX QUEUES    PROFILE
IPv6, 128 Bytes, 10k Flows      ovs-dpdk    conntrack-ipv6    1       1            udp-128-10k-ipv6
    [Tags]    10kflows    128b    one-way    ratio
