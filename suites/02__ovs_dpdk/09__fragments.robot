*** Settings ***
Documentation    Open vSwitch with DPDK tracks connections whose datagrams are longer than a frame, compared with forwarding.
...
...              A packet of the rate is a datagram of three fragments, and is lost where one of them is.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    1cpu    1rxq    pps    10kflows    both-ways

Name             Fragments


*** Test Cases ***                               DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Conntrack, Fragments Of 1518 Bytes, Both Ways    ovs-dpdk    conntrack    1       1            udp-fragments
    [Tags]    1518b    fragments    ratio    nightly
