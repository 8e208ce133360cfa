*** Settings ***
Documentation    What a new connection costs, in instructions.
...
...              Counted in an emulated machine, net of the wires and the traffic alone, and compared with another
...              topology in the same machine. UDP: a request and a reply. TCP: opened and closed without data.
...
...              Floors: variables/sla/local.yaml. Counted with -v TESTBED:emulated; others skip
...              these rows, unless --include names their tag.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Instruction Cost Should Meet SLA

Test Tags        emulated    1cpu    1rxq    new-connections

Name             Instructions Per Connection


*** Test Cases ***                  DATAPATH    RULESET                CPUS    RX QUEUES    PROFILE
Forwarding, UDP                     emulated    forward                1       1            udp-exchange
    [Tags]    baseline    forward    linux
Forwarding, TCP                     emulated    forward                1       1            tcp-no-data
    [Tags]    baseline    forward    linux
Stateful iptables, UDP              emulated    iptables-stateful      1       1            udp-exchange
    [Tags]    conntrack    stateful    iptables    linux
Stateful iptables, TCP              emulated    iptables-stateful      1       1            tcp-no-data
    [Tags]    conntrack    stateful    iptables    linux
Stateful nftables, UDP              emulated    nftables-stateful      1       1            udp-exchange
    [Tags]    conntrack    stateful    nftables    linux
Stateful nftables, TCP              emulated    nftables-stateful      1       1            tcp-no-data
    [Tags]    conntrack    stateful    nftables    linux
Flowtable, nftables, UDP            emulated    nftables-flowtable     1       1            udp-exchange
    [Tags]    conntrack    stateful    nftables    flowtable    linux    extended
SNAT, iptables, UDP                 emulated    iptables-snat          1       1            udp-exchange
    [Tags]    conntrack    nat    snat    iptables    linux
SNAT, iptables, TCP                 emulated    iptables-snat          1       1            tcp-no-data
    [Tags]    conntrack    nat    snat    iptables    linux
DNAT, iptables, UDP                 emulated    iptables-dnat          1       1            udp-exchange
    [Tags]    conntrack    nat    dnat    iptables    linux    extended
DNAT, iptables, TCP                 emulated    iptables-dnat          1       1            tcp-no-data
    [Tags]    conntrack    nat    dnat    iptables    linux    extended
Masquerade, iptables, UDP           emulated    iptables-masquerade    1       1            udp-exchange
    [Tags]    conntrack    nat    masquerade    iptables    linux    extended
Masquerade, iptables, TCP           emulated    iptables-masquerade    1       1            tcp-no-data
    [Tags]    conntrack    nat    masquerade    iptables    linux    extended
Open vSwitch, Forwarding, UDP       emulated    ovs-forward            1       1            udp-exchange
    [Tags]    ovs    baseline    forward
Open vSwitch, Forwarding, TCP       emulated    ovs-forward            1       1            tcp-no-data
    [Tags]    ovs    baseline    forward
Open vSwitch, Conntrack, UDP        emulated    ovs-conntrack          1       1            udp-exchange
    [Tags]    ovs    conntrack
Open vSwitch, Conntrack, TCP        emulated    ovs-conntrack          1       1            tcp-no-data
    [Tags]    ovs    conntrack
Open vSwitch, NAT, UDP              emulated    ovs-nat                1       1            udp-exchange
    [Tags]    ovs    conntrack    nat    snat    extended
Open vSwitch, NAT, TCP              emulated    ovs-nat                1       1            tcp-no-data
    [Tags]    ovs    conntrack    nat    snat    extended
OVS in Userspace, Conntrack, UDP    emulated    ovs-user-conntrack     1       1            udp-exchange
    [Tags]    ovs    userspace    conntrack    extended
OVS in Userspace, Conntrack, TCP    emulated    ovs-user-conntrack     1       1            tcp-no-data
    [Tags]    ovs    userspace    conntrack    extended
OVS in Userspace, NAT, UDP          emulated    ovs-user-nat           1       1            udp-exchange
    [Tags]    ovs    userspace    conntrack    nat    snat    extended
OVS in Userspace, NAT, TCP          emulated    ovs-user-nat           1       1            tcp-no-data
    [Tags]    ovs    userspace    conntrack    nat    snat    extended
