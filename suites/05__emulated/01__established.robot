*** Settings ***
Documentation    What a packet of a known connection costs, in instructions.
...
...              Counted in an emulated machine, net of the wires and the traffic alone, and compared with another
...              topology in the same machine. Frames have 64 bytes, and are of one flow where the title does not say
...              how many. Bonds have one link each.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Keep Its Cost

Name             Instructions Per Packet


*** Test Cases ***                   DATAPATH    RULESET                CPUS    RX QUEUES    PROFILE
Forwarding                           emulated    forward                1       1            udp-64-1flow
Forwarding, 1k Flows                 emulated    forward                1       1            udp-64-1k
Forwarding, Bonds                    emulated    forward                1       1            udp-64-1flow         ports=bond
Forwarding, VLAN                     emulated    forward                1       1            udp-64-1flow-vlan    ports=vlan
Forwarding, Bonds, VLAN              emulated    forward                1       1            udp-64-1flow-vlan    ports=bond-vlan
Linux Bridge                         emulated    bridge                 1       1            udp-64-1flow
Linux Bridge, VLAN                   emulated    bridge                 1       1            udp-64-1flow-vlan    ports=vlan
Linux Bridge, Bonds                  emulated    bridge                 1       1            udp-64-1flow         ports=bond
Linux Bridge, Bonds, VLAN            emulated    bridge                 1       1            udp-64-1flow-vlan    ports=bond-vlan
Stateful iptables                    emulated    iptables-stateful      1       1            udp-64-1flow
Stateful iptables, 1k Flows          emulated    iptables-stateful      1       1            udp-64-1k
Stateful iptables, 10k Kept Flows    emulated    iptables-stateful      1       1            udp-64-10k
Stateful iptables, 1 Rule More       emulated    iptables-1-rule        1       1            udp-64-1flow
Stateful iptables, 10 Rules More     emulated    iptables-10-rules      1       1            udp-64-1flow
Stateful iptables, 100 Rules More    emulated    iptables-100-rules     1       1            udp-64-1flow
Stateful nftables                    emulated    nftables-stateful      1       1            udp-64-1flow
Flowtable, nftables                  emulated    nftables-flowtable     1       1            udp-64-1flow
Flowtable, nftables, 1k Flows        emulated    nftables-flowtable     1       1            udp-64-1k
SNAT, iptables                       emulated    iptables-snat          1       1            udp-64-1flow
DNAT, iptables                       emulated    iptables-dnat          1       1            udp-64-1flow
Masquerade, iptables                 emulated    iptables-masquerade    1       1            udp-64-1flow
Open vSwitch, Forwarding             emulated    ovs-forward            1       1            udp-64-1flow
Open vSwitch, Conntrack              emulated    ovs-conntrack          1       1            udp-64-1flow
Open vSwitch, NAT                    emulated    ovs-nat                1       1            udp-64-1flow
OVS Bridge                           emulated    ovs-normal             1       1            udp-64-1flow
OVS Bridge, VLAN                     emulated    ovs-normal             1       1            udp-64-1flow-vlan    ports=vlan
OVS Bridge, Linux Bonds              emulated    ovs-normal             1       1            udp-64-1flow         ports=bond
OVS Bridge, Linux Bonds, VLAN        emulated    ovs-normal             1       1            udp-64-1flow-vlan    ports=bond-vlan
OVS Bridge, OVS Bonds                emulated    ovs-bonds              1       1            udp-64-1flow
OVS Bridge, OVS Bonds, VLAN          emulated    ovs-bonds              1       1            udp-64-1flow-vlan    ports=vlan
OVS, 5 Match Fields                  emulated    ovs-match-tuple        1       1            udp-64-1flow
OVS, 5 Match Fields, 1k Flows        emulated    ovs-match-tuple        1       1            udp-64-1k
OVS in Userspace, Forwarding         emulated    ovs-user-forward       1       1            udp-64-1flow
OVS in Userspace, Conntrack          emulated    ovs-user-conntrack     1       1            udp-64-1flow
OVS in Userspace, NAT                emulated    ovs-user-nat           1       1            udp-64-1flow
OVS in Userspace, No EMC             emulated    ovs-user-no-emc        1       1            udp-64-1flow
