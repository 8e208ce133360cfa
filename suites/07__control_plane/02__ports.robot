*** Settings ***
Documentation    Containers come and go: ports of the bridge are added and deleted while traffic passes.
...
...              128 ports stay; ten others are added one after the other, then deleted, ten ports in a second.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Port Churn Time Should Meet SLA

Test Tags        ovs    ovs-dpdk    control-plane    conntrack    1cpu    1rxq    churn

Name             Port Churn


*** Test Cases ***              DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Port Churn Beside 128 Ports     ovs-dpdk    conntrack    1       1            short-lived    idle_ports=128
