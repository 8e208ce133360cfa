*** Settings ***
Documentation    What a packet of a known connection costs, in instructions.
...
...              Counted in an emulated machine, net of the wires and the traffic alone, and compared with another
...              topology in the same machine. Frames have 64 bytes. Bonds have one link each.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Keep Its Cost

Name             Instructions Per Packet


*** Test Cases ***           DATAPATH    RULESET              CPUS    RX QUEUES    PROFILE
Forwarding                   emulated    forward              1       1            udp-64-1flow
Forwarding, Bonds            emulated    forward              1       1            udp-64-1flow         ports=bond
Forwarding, VLAN             emulated    forward              1       1            udp-64-1flow-vlan    ports=vlan
Forwarding, Bonds, VLAN      emulated    forward              1       1            udp-64-1flow-vlan    ports=bond-vlan
Linux Bridge                 emulated    bridge               1       1            udp-64-1flow
Linux Bridge, VLAN           emulated    bridge               1       1            udp-64-1flow-vlan    ports=vlan
Linux Bridge, Bonds          emulated    bridge               1       1            udp-64-1flow         ports=bond
Linux Bridge, Bonds, VLAN    emulated    bridge               1       1            udp-64-1flow-vlan    ports=bond-vlan
Stateful iptables            emulated    iptables-stateful    1       1            udp-64-1flow
Stateful nftables            emulated    nftables-stateful    1       1            udp-64-1flow
SNAT, iptables               emulated    iptables-snat        1       1            udp-64-1flow
Open vSwitch, Forwarding     emulated    ovs-forward          1       1            udp-64-1flow
Open vSwitch, Conntrack      emulated    ovs-conntrack        1       1            udp-64-1flow
