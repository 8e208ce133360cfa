*** Settings ***
Documentation    What happens to other zones of connection tracking when one has as many entries as it may have.
...
...              New connections of the full zone are refused, those that are open go on, and those of another zone open
...              and go on as if nothing was full.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Full Zone Should Meet SLA

Test Tags        ovs    ovs-dpdk    table    conntrack    zones    1cpu    1rxq    full    nightly

Name             Full Zone


*** Test Cases ***         DATAPATH    RULESET       CPUS    RX QUEUES    PROFILE
Full Zone, Open vSwitch    ovs-dpdk    zone-limit    1       1            held       timeout_s=120
