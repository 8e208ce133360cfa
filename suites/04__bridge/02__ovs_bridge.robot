*** Settings ***
Documentation    A learning bridge of Open vSwitch with DPDK, for comparison with that of the Linux kernel.
...
...              Compared with plain forwarding (one flow: with conntrack), and with a VLAN or bonds with the bridge
...              without. Frames of 1518 bytes and more have a rate as their promise, which the generator bounds. With
...              bonds, each side has two links.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    bridge    1cpu    1rxq    pps    baseline

Name             OVS Bridge


*** Test Cases ***                            DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
OVS Bridge, 64 Bytes, 1 Flow                  ovs-dpdk    normal     1       1            udp-64-1flow
    [Tags]    1flow    one-way    ratio    not-quick
OVS Bridge, 64 Bytes, 10k Flows               ovs-dpdk    normal     1       1            udp-64-10k
    [Tags]    10kflows    one-way    ratio    acceptance
OVS Bridge, 64 Bytes, 10k Flows, Both Ways    ovs-dpdk    normal     1       1            udp-64-10k-both
    [Tags]    10kflows    both-ways    ratio
OVS Bridge, 1518 Bytes, 10k Flows             ovs-dpdk    normal     1       1            udp-1518-10k
    [Tags]    10kflows    1518b    one-way
OVS Bridge, 9018 Bytes, 10k Flows             ovs-dpdk    normal     1       1            udp-9018           mtu=9000
    [Tags]    10kflows    jumbo    one-way    not-quick
OVS Bridge, VLAN, 64 Bytes, 10k Flows         ovs-dpdk    normal     1       1            udp-64-10k-vlan    ports=vlan
    [Tags]    vlan    10kflows    one-way    ratio
OVS Bridge, Bonds, 64 Bytes, 10k Flows        ovs-dpdk    normal     1       1            udp-64-10k         ports=bond
    [Tags]    bond    10kflows    one-way    ratio
OVS Bridge, Bonds, VLAN, 10k Flows            ovs-dpdk    normal     1       1            udp-64-10k-vlan    ports=bond-vlan
    [Tags]    vlan    bond    10kflows    one-way    ratio    not-quick
OVS Bridge, Bonds, 9018 Bytes, 10k Flows      ovs-dpdk    normal     1       1            udp-9018           ports=bond    mtu=9000
    [Tags]    bond    10kflows    jumbo    one-way    nightly
