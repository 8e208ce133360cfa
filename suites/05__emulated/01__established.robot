*** Settings ***
Documentation    What a packet of a known connection costs, in instructions.
...
...              Counted in an emulated machine, net of the wires and the traffic alone, and compared with another
...              topology in the same machine. Frames have 64 bytes, and are of one flow where the title does not say
...              how many. Bonds have one link each; with LACP (802.3ad), two links to
...              the server, as in 2014, whose own bond is part of the figure.
...
...              Floors: variables/sla/local.yaml. Counted with -v TESTBED:emulated; others skip
...              these rows, unless --include names their tag.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Instruction Cost Should Meet SLA

Test Tags        emulated    1cpu    1rxq    established

Name             Instructions Per Packet


*** Test Cases ***                   DATAPATH    RULESET                CPUS    RX QUEUES    PROFILE
Forwarding                           emulated    forward                1       1            udp-64-1flow
    [Tags]    baseline    forward    linux
Forwarding, 1k Flows                 emulated    forward                1       1            udp-64-1k
    [Tags]    1kflows    baseline    forward    linux    extended
Forwarding, Bonds                    emulated    forward                1       1            udp-64-1flow         ports=bond
    [Tags]    bond    baseline    forward    linux
Forwarding, VLAN                     emulated    forward                1       1            udp-64-1flow-vlan    ports=vlan
    [Tags]    vlan    baseline    forward    linux
Forwarding, Bonds, VLAN              emulated    forward                1       1            udp-64-1flow-vlan    ports=bond-vlan
    [Tags]    vlan    bond    baseline    forward    linux
Linux Bridge                         emulated    bridge                 1       1            udp-64-1flow
    [Tags]    bridge    baseline    linux
Linux Bridge, VLAN                   emulated    bridge                 1       1            udp-64-1flow-vlan    ports=vlan
    [Tags]    bridge    vlan    baseline    linux
Linux Bridge, Bonds                  emulated    bridge                 1       1            udp-64-1flow         ports=bond
    [Tags]    bridge    bond    baseline    linux
Linux Bridge, Bonds, VLAN            emulated    bridge                 1       1            udp-64-1flow-vlan    ports=bond-vlan
    [Tags]    bridge    vlan    bond    baseline    linux
Stateful iptables                    emulated    iptables-stateful      1       1            udp-64-1flow
    [Tags]    conntrack    stateful    iptables    linux
Stateful iptables, 1k Flows          emulated    iptables-stateful      1       1            udp-64-1k
    [Tags]    conntrack    stateful    iptables    1kflows    linux    extended
Stateful iptables, 10k Kept Flows    emulated    iptables-stateful      1       1            udp-64-10k
    [Tags]    conntrack    stateful    iptables    10kflows    linux    extended
Stateful iptables, 1 Rule More       emulated    iptables-1-rule        1       1            udp-64-1flow
    [Tags]    conntrack    stateful    iptables    rules    linux    extended
Stateful iptables, 10 Rules More     emulated    iptables-10-rules      1       1            udp-64-1flow
    [Tags]    conntrack    stateful    iptables    rules    linux    extended
Stateful iptables, 100 Rules More    emulated    iptables-100-rules     1       1            udp-64-1flow
    [Tags]    conntrack    stateful    iptables    rules    linux    extended
Stateful nftables                    emulated    nftables-stateful      1       1            udp-64-1flow
    [Tags]    conntrack    stateful    nftables    linux
Flowtable, nftables                  emulated    nftables-flowtable     1       1            udp-64-1flow
    [Tags]    conntrack    stateful    nftables    flowtable    linux    extended
Flowtable, nftables, 1k Flows        emulated    nftables-flowtable     1       1            udp-64-1k
    [Tags]    conntrack    stateful    nftables    flowtable    1kflows    linux    extended
SNAT, iptables                       emulated    iptables-snat          1       1            udp-64-1flow
    [Tags]    conntrack    nat    snat    iptables    linux
DNAT, iptables                       emulated    iptables-dnat          1       1            udp-64-1flow
    [Tags]    conntrack    nat    dnat    iptables    linux    extended
Masquerade, iptables                 emulated    iptables-masquerade    1       1            udp-64-1flow
    [Tags]    conntrack    nat    masquerade    iptables    linux    extended
Open vSwitch, Forwarding             emulated    ovs-forward            1       1            udp-64-1flow
    [Tags]    ovs    baseline    forward
Open vSwitch, Conntrack              emulated    ovs-conntrack          1       1            udp-64-1flow
    [Tags]    ovs    conntrack
Open vSwitch, NAT                    emulated    ovs-nat                1       1            udp-64-1flow
    [Tags]    ovs    conntrack    nat    snat    extended
OVS Bridge                           emulated    ovs-normal             1       1            udp-64-1flow
    [Tags]    bridge    ovs    baseline    extended
OVS Bridge, VLAN                     emulated    ovs-normal             1       1            udp-64-1flow-vlan    ports=vlan
    [Tags]    bridge    ovs    vlan    baseline    extended
OVS Bridge, Linux Bonds              emulated    ovs-normal             1       1            udp-64-1flow         ports=bond
    [Tags]    bridge    ovs    bond    baseline    extended
OVS Bridge, Linux Bonds, VLAN        emulated    ovs-normal             1       1            udp-64-1flow-vlan    ports=bond-vlan
    [Tags]    bridge    ovs    vlan    bond    baseline    extended
OVS Bridge, OVS Bonds                emulated    ovs-bonds              1       1            udp-64-1flow
    [Tags]    bridge    ovs    bond    baseline    extended
OVS Bridge, OVS Bonds, VLAN          emulated    ovs-bonds              1       1            udp-64-1flow-vlan    ports=vlan
    [Tags]    bridge    ovs    vlan    bond    baseline    extended
OVS, 5 Match Fields                  emulated    ovs-match-tuple        1       1            udp-64-1flow
    [Tags]    ovs    match-fields    baseline    extended
OVS, 5 Match Fields, 1k Flows        emulated    ovs-match-tuple        1       1            udp-64-1k
    [Tags]    ovs    match-fields    1kflows    baseline    extended
OVS in Userspace, Forwarding         emulated    ovs-user-forward       1       1            udp-64-1flow
    [Tags]    ovs    userspace    baseline    forward    extended
OVS in Userspace, Conntrack          emulated    ovs-user-conntrack     1       1            udp-64-1flow
    [Tags]    ovs    userspace    conntrack    extended
OVS in Userspace, NAT                emulated    ovs-user-nat           1       1            udp-64-1flow
    [Tags]    ovs    userspace    conntrack    nat    snat    extended
OVS in Userspace, No EMC             emulated    ovs-user-no-emc        1       1            udp-64-1flow
    [Tags]    ovs    userspace    conntrack    match-fields    extended
Forwarding, 10k Routes               emulated    forward-10k-routes     1       1            udp-64-1flow
    [Tags]    baseline    linux    extended
Forwarding, LACP Bond                emulated    lacp-forward           1       1            udp-64-1flow
    [Tags]    bond    baseline    linux    extended
Forwarding, LACP Bond, VLAN          emulated    lacp-forward-vlan      1       1            udp-64-1flow
    [Tags]    vlan    bond    baseline    linux    extended
Linux Bridge, LACP Bond              emulated    lacp-bridge            1       1            udp-64-1flow
    [Tags]    bridge    bond    baseline    linux    extended
Linux Bridge, LACP Bond, VLAN        emulated    lacp-bridge-vlan       1       1            udp-64-1flow
    [Tags]    bridge    vlan    bond    baseline    linux    extended
OVS Bridge, LACP Linux Bond          emulated    ovs-lacp-linux         1       1            udp-64-1flow
    [Tags]    bridge    ovs    bond    baseline    extended
OVS Bridge, LACP OVS Bond            emulated    ovs-lacp               1       1            udp-64-1flow
    [Tags]    bridge    ovs    bond    baseline    extended
OVS Bridge, LACP OVS Bond, VLAN      emulated    ovs-lacp-vlan          1       1            udp-64-1flow
    [Tags]    bridge    ovs    vlan    bond    baseline    extended
OVS, Conntrack, No Field             emulated    ovs-match-none         1       1            udp-64-1flow
    [Tags]    ovs    conntrack    match-fields    extended
OVS, Conntrack, Source               emulated    ovs-match-src          1       1            udp-64-1flow
    [Tags]    ovs    conntrack    match-fields    extended
OVS, Conntrack, 2-Tuple              emulated    ovs-match-2-tuple      1       1            udp-64-1flow
    [Tags]    ovs    conntrack    match-fields    extended
OVS, Conntrack, 4-Tuple              emulated    ovs-match-4-tuple      1       1            udp-64-1flow
    [Tags]    ovs    conntrack    match-fields    extended
OVS, Conntrack, 5-Tuple              emulated    ovs-match-5-tuple      1       1            udp-64-1flow
    [Tags]    ovs    conntrack    match-fields    extended
