*** Settings ***
Documentation    A learning bridge of Open vSwitch with DPDK, for comparison with that of the Linux kernel.
...
...              Large frames are about throughput, which their floors promise as well. With bonds, each side has two
...              links.

Resource         ../../resources/ovs_dpdk.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Of OVS-DPDK Should Meet SLA

Test Tags        ovs-dpdk    bridge    pps    1cpu    1rxq

Name             OVS Bridge


*** Test Cases ***                            RULESET      PMD CPUS    RX QUEUES    MTU     PROFILE
OVS Bridge, 64 Bytes, 1 Flow                  normal       1           1            1500    udp-64-1flow
    [Tags]    1flow    one-way
OVS Bridge, 64 Bytes, 10k Flows               normal       1           1            1500    udp-64-10k
    [Tags]    10kflows    one-way
OVS Bridge, 64 Bytes, 10k Flows, Both Ways    normal       1           1            1500    udp-64-10k-both
    [Tags]    10kflows    both-ways
OVS Bridge, 1518 Bytes, 10k Flows             normal       1           1            1500    udp-1518-10k
    [Tags]    10kflows    one-way    1518b
OVS Bridge, 9018 Bytes, 10k Flows             normal       1           1            9000    udp-9018
    [Tags]    10kflows    one-way    jumbo
OVS Bridge, VLAN, 64 Bytes, 10k Flows         vlan         1           1            1500    udp-64-10k-vlan
    [Tags]    10kflows    one-way    vlan
OVS Bridge, Bonds, 64 Bytes, 10k Flows        bond         1           1            1500    udp-64-10k
    [Tags]    10kflows    one-way    bond
OVS Bridge, Bonds, VLAN, 10k Flows            bond-vlan    1           1            1500    udp-64-10k-vlan
    [Tags]    10kflows    one-way    bond    vlan
