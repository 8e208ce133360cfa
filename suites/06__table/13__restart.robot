*** Settings ***
Documentation    What becomes of connections when the device under test is restarted under a load of new ones.
...
...              Ten thousand are open when ovs-vswitchd ends as its service does, starts again and gets its flows back.
...              The time until a thousand new ones have opened, at the rate that was held before, is measured; then those
...              that were open are asked.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Restart Should Meet SLA

Test Tags        ovs    ovs-dpdk    table    conntrack    1cpu    1rxq    restart    nightly

Name             Restart


*** Test Cases ***       DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Restart, Open vSwitch    ovs-dpdk    conntrack    1       1            held       timeout_s=120
