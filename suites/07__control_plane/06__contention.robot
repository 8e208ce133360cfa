*** Settings ***
Documentation    Where the time of a thread that forwards goes at the highest load: which share of it locks have, which it
...              waits for, or makes others wait for.
...
...              Nothing else is judged by the trial in which the thread is sampled.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Lock Share Should Meet SLA

Test Tags        ovs    ovs-dpdk    control-plane    conntrack    contention    long

Name             Contention


*** Test Cases ***                   DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Contention Of New Connections        ovs-dpdk    conntrack    1       1            short-lived
    [Tags]    1cpu    1rxq
Contention Of Known Connections      ovs-dpdk    conntrack    1       1            long-lived
    [Tags]    1cpu    1rxq
Contention, 2 CPUs, 2 Queues         ovs-dpdk    conntrack    2       2            long-lived
    [Tags]    2cpu    2rxq
Contention, 8 CPUs, 8 Queues         ovs-dpdk    conntrack    8       8            long-lived
    [Tags]    8cpu    8rxq
