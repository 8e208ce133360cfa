*** Settings ***
Documentation    What a new connection costs in a large table.
...
...              A million connections are known, and new ones begin and end; compared with the same next to 10 000. A
...              table whose look-up takes longer the more it holds is missed.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/gate.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    cps    ratio    scale

Name             Scale, New Connections


*** Test Cases ***                          DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
New Connections Next To 1M, Open vSwitch    ovs-dpdk    conntrack    1       1            new-1m
    [Tags]    ovs    ovs-dpdk    new-1m
