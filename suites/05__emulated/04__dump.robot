*** Settings ***
Documentation    What it costs to read a connection out of the table, in instructions: an operator prints the table.
...
...              Counted in an emulated machine: all connections of a table are read, net of going through an empty
...              table, and compared with another topology in the same machine. It is what the kernel does for
...              conntrack -L, and for dpctl/dump-conntrack of an Open vSwitch with its datapath in the kernel.
...
...              Floors: variables/sla/local.yaml. Counted with -v TESTBED:emulated; others skip
...              these rows, unless --include names their tag.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Instruction Cost Should Meet SLA

Test Tags        emulated    control-plane    conntrack    1cpu    1rxq    dump

Name             Instructions Per Entry Of A Dump


*** Test Cases ***               DATAPATH    RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, Dump          emulated    iptables-stateful    1       1            udp-dump
    [Tags]    stateful    iptables    linux
Stateful nftables, Dump          emulated    nftables-stateful    1       1            udp-dump
    [Tags]    stateful    nftables    linux
SNAT, iptables, Dump             emulated    iptables-snat        1       1            udp-dump
    [Tags]    nat    snat    iptables    linux
Open vSwitch, Conntrack, Dump    emulated    ovs-conntrack        1       1            udp-dump
    [Tags]    ovs
Open vSwitch, NAT, Dump          emulated    ovs-nat              1       1            udp-dump
    [Tags]    ovs    nat    snat    extended
