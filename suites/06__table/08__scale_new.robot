*** Settings ***
Documentation    What a new connection costs in a large table.
...
...              A million connections are known, 200 000 in the kernel, and new ones begin and end; compared with the same
...              next to 10 000. A table whose look-up takes longer the more it holds is missed.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    cps    ratio    scale

Name             Scale, New Connections


*** Test Cases ***                                 DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
New Connections Next To 1M, Open vSwitch           ovs-dpdk        conntrack            1       1            new-1m
    [Tags]    ovs    ovs-dpdk    new-1m
New Connections Next To 200k, Stateful iptables    linux-router    iptables-stateful    1       1            new-200k
    [Tags]    linux    router    stateful    iptables    new-200k
