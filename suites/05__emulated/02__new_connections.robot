*** Settings ***
Documentation    What a new connection costs, in instructions.
...
...              Counted in an emulated machine, net of the wires and the traffic alone, and compared with another
...              topology in the same machine. UDP: a request and a reply. TCP: opened and closed without data.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Keep Its Cost

Name             Instructions Per Connection


*** Test Cases ***                  DATAPATH    RULESET                CPUS    RX QUEUES    PROFILE
Forwarding, UDP                     emulated    forward                1       1            udp-exchange
Forwarding, TCP                     emulated    forward                1       1            tcp-no-data
Stateful iptables, UDP              emulated    iptables-stateful      1       1            udp-exchange
Stateful iptables, TCP              emulated    iptables-stateful      1       1            tcp-no-data
Stateful nftables, UDP              emulated    nftables-stateful      1       1            udp-exchange
Stateful nftables, TCP              emulated    nftables-stateful      1       1            tcp-no-data
Flowtable, nftables, UDP            emulated    nftables-flowtable     1       1            udp-exchange
SNAT, iptables, UDP                 emulated    iptables-snat          1       1            udp-exchange
SNAT, iptables, TCP                 emulated    iptables-snat          1       1            tcp-no-data
DNAT, iptables, UDP                 emulated    iptables-dnat          1       1            udp-exchange
DNAT, iptables, TCP                 emulated    iptables-dnat          1       1            tcp-no-data
Masquerade, iptables, UDP           emulated    iptables-masquerade    1       1            udp-exchange
Masquerade, iptables, TCP           emulated    iptables-masquerade    1       1            tcp-no-data
Open vSwitch, Forwarding, UDP       emulated    ovs-forward            1       1            udp-exchange
Open vSwitch, Forwarding, TCP       emulated    ovs-forward            1       1            tcp-no-data
Open vSwitch, Conntrack, UDP        emulated    ovs-conntrack          1       1            udp-exchange
Open vSwitch, Conntrack, TCP        emulated    ovs-conntrack          1       1            tcp-no-data
Open vSwitch, NAT, UDP              emulated    ovs-nat                1       1            udp-exchange
Open vSwitch, NAT, TCP              emulated    ovs-nat                1       1            tcp-no-data
OVS in Userspace, Conntrack, UDP    emulated    ovs-user-conntrack     1       1            udp-exchange
OVS in Userspace, Conntrack, TCP    emulated    ovs-user-conntrack     1       1            tcp-no-data
OVS in Userspace, NAT, UDP          emulated    ovs-user-nat           1       1            udp-exchange
OVS in Userspace, NAT, TCP          emulated    ovs-user-nat           1       1            tcp-no-data
