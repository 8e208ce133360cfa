*** Settings ***
Documentation    Open vSwitch collects the statistics of all interfaces each 5 s while traffic passes, in its main thread.
...
...              Seen from outside: CPU time of that thread.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Statistics Time Should Meet SLA

Test Tags        ovs    ovs-dpdk    control-plane    conntrack    1cpu    1rxq    statistics    long

Name             Interface Statistics


*** Test Cases ***            DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Statistics Of 16 Ports        ovs-dpdk    conntrack    1       1            short-lived    idle_ports=16
Statistics Of 128 Ports       ovs-dpdk    conntrack    1       1            short-lived    idle_ports=128
Statistics Of 1024 Ports      ovs-dpdk    conntrack    1       1            short-lived    idle_ports=1024
