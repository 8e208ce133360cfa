*** Settings ***
Documentation    What it costs to remove a connection from the table, in instructions.
...
...              Counted in an emulated machine: all connections of a table are removed at once, net of going through an
...              empty table, and compared with another topology in the same machine.
...
...              Floors: variables/sla/local.yaml. Counted with -v TESTBED:emulated; others skip
...              these rows, unless --include names their tag.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Instruction Cost Should Meet SLA

Test Tags        emulated    conntrack    1cpu    1rxq    removal

Name             Instructions Per Removal


*** Test Cases ***                  DATAPATH    RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, Removal          emulated    iptables-stateful    1       1            udp-removal
    [Tags]    stateful    iptables    linux
Stateful nftables, Removal          emulated    nftables-stateful    1       1            udp-removal
    [Tags]    stateful    nftables    linux
SNAT, iptables, Removal             emulated    iptables-snat        1       1            udp-removal
    [Tags]    nat    snat    iptables    linux
Open vSwitch, Conntrack, Removal    emulated    ovs-conntrack        1       1            udp-removal
    [Tags]    ovs
