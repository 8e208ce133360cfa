*** Settings ***
Documentation    An operator prints the connection table while traffic passes.
...
...              The load is small, and held alone. Short-lived connections are remembered for a second after they are
...              closed: at 10 000 per second there are as many entries.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Table Dump Time Should Meet SLA

Test Tags        ovs    ovs-dpdk    control-plane    conntrack    1cpu    1rxq    dump

Name             Table Dump


*** Test Cases ***            DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Dump Of 10 000 Entries        ovs-dpdk    conntrack    1       1            short-lived
