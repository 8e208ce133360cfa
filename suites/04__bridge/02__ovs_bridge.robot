*** Settings ***
Documentation    A learning bridge of Open vSwitch with DPDK, for comparison with that of the Linux kernel.
...
...              Compared with plain forwarding (one flow: with conntrack), and with a VLAN or bonds with the bridge
...              without. Frames of 1518 bytes and more have a rate as their promise, which the generator bounds. With
...              bonds, each side has two links.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Packet Rate

Name             OVS Bridge


*** Test Cases ***                            DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
OVS Bridge, 64 Bytes, 1 Flow                  ovs-dpdk    normal     1       1            udp-64-1flow
OVS Bridge, 64 Bytes, 10k Flows               ovs-dpdk    normal     1       1            udp-64-10k
OVS Bridge, 64 Bytes, 10k Flows, Both Ways    ovs-dpdk    normal     1       1            udp-64-10k-both
OVS Bridge, 1518 Bytes, 10k Flows             ovs-dpdk    normal     1       1            udp-1518-10k
OVS Bridge, 9018 Bytes, 10k Flows             ovs-dpdk    normal     1       1            udp-9018           mtu=9000
OVS Bridge, VLAN, 64 Bytes, 10k Flows         ovs-dpdk    normal     1       1            udp-64-10k-vlan    ports=vlan
OVS Bridge, Bonds, 64 Bytes, 10k Flows        ovs-dpdk    normal     1       1            udp-64-10k         ports=bond
OVS Bridge, Bonds, VLAN, 10k Flows            ovs-dpdk    normal     1       1            udp-64-10k-vlan    ports=bond-vlan
