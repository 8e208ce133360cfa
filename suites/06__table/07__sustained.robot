*** Settings ***
Documentation    The rate that lasts: the table is filled first to what the rate leaves in it, then the rate is offered while
...              sweeps remove as many entries as come.
...
...              40 s or more, two sweeps of Open vSwitch. Closed connections are remembered for 1 s, as the rulesets set it.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Sustained Rate Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    sustained

Name             Sustained Rate


*** Test Cases ***                            DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Sustained Rate, Conntrack, Open vSwitch       ovs-dpdk        conntrack            1       1            short-lived
    [Tags]    ovs    ovs-dpdk
Sustained Rate, SNAT, Open vSwitch            ovs-dpdk        nat                  1       1            short-lived
    [Tags]    ovs    ovs-dpdk    nat    snat    nightly
Sustained Rate, Stateful iptables             linux-router    iptables-stateful    1       1            short-lived
    [Tags]    linux    router    stateful    iptables    nightly
