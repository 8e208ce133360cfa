*** Settings ***
Documentation    What happens when the connection table is full.
...
...              New connections are refused, those that are open go on, and when there is room new ones open.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Recovery Time Should Meet SLA

Test Tags        ovs    ovs-dpdk    table    conntrack    1cpu    1rxq    full    acceptance

Name             Full Table


*** Test Cases ***          DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Full Table, Open vSwitch    ovs-dpdk    conntrack    1       1            held       timeout_s=120    max_connections=10000
