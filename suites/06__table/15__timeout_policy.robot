*** Settings ***
Documentation    Whether entries of the connection table stay as long as was asked for.
...
...              Connections are opened and asked a message, and the device under test tells how long their entries still
...              stay. The first timeout policy of a zone has no effect in Open vSwitch since 3.3 (docs/releases.md): its
...              row asks for just that.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Timeout Should Meet SLA

Test Tags        ovs    ovs-dpdk    table    conntrack    1cpu    1rxq    timeout-policy

Name             Timeout Policy


*** Test Cases ***                 DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Timeout Policy, First Of A Zone    ovs-dpdk    conntrack    1       1            held       timeout_s=5
    ...    zone_policy=first
