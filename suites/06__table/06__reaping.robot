*** Settings ***
Documentation    What a load loses while a million entries of other connections expire.
...
...              It is half of what a closed loop shows, and held alone. Timeouts of open connections are 30 s.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Load During Expiry Should Meet SLA

Test Tags        ovs    ovs-dpdk    table    conntrack    1cpu    1rxq    reaping    nightly

Name             Reaping


*** Test Cases ***       DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Reaping, Open vSwitch    ovs-dpdk    conntrack    1       1            short-lived
