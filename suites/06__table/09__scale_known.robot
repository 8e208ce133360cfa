*** Settings ***
Documentation    What it costs to find a connection in a large table.
...
...              Packets of a million connections that are known, compared with those of 10 000.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/gate.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    pps    both-ways    ratio    scale

Name             Scale, Known Connections


*** Test Cases ***                          DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Open vSwitch, A Million Known, Both Ways    ovs-dpdk    conntrack    1       1            known-1m
    ...    emc_insert_inv_prob=0
    [Tags]    ovs    ovs-dpdk    1mflows
