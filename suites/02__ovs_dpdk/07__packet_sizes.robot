*** Settings ***
Documentation    Open vSwitch with DPDK tracks connections: packets per second by the size of the frame (slide 6 of 2017).
...
...              The sizes are those of RFC 2544, section 9.1. Each is compared with the smallest frame, and that with the
...              next one, side by side: only the header of a packet is looked at.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    1cpu    1rxq    pps    10kflows    one-way    ratio    nightly

Name             Packet Sizes


*** Test Cases ***               DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Conntrack, 64 Bytes              ovs-dpdk    conntrack    1       1            udp-64-10k
Conntrack, 128 Bytes             ovs-dpdk    conntrack    1       1            udp-128-10k
    [Tags]    128b
Conntrack, 256 Bytes             ovs-dpdk    conntrack    1       1            udp-256-10k
    [Tags]    256b
Conntrack, 512 Bytes             ovs-dpdk    conntrack    1       1            udp-512-10k
    [Tags]    512b
Conntrack, 1024 Bytes            ovs-dpdk    conntrack    1       1            udp-1024-10k
    [Tags]    1024b
Conntrack, 1280 Bytes            ovs-dpdk    conntrack    1       1            udp-1280-10k
    [Tags]    1280b
Conntrack, 1518 Bytes            ovs-dpdk    conntrack    1       1            udp-1518-10k
    [Tags]    1518b
