*** Settings ***
Documentation    Open vSwitch with DPDK tracks every connection.
...
...              New connections are let in from the clients only, answers to known connections only. The topologies
...              with more than one CPU, and the one with 1 CPU and 1 queue, are those that were published for OVS
...              2.17.2 and 3.0.0. Queues are receive queues per port.

Resource         ../../resources/ovs_dpdk.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Of OVS-DPDK Should Meet SLA

Test Tags        ovs-dpdk    conntrack    cps    pps

Name             Conntrack


*** Test Cases ***                          RULESET      PMD CPUS    RX QUEUES    PROFILE
1 CPU, 1 Queue, Short-Lived Connections     conntrack    1           1            short-lived
    [Tags]    1cpu    1rxq    short-lived
1 CPU, 2 Queues, Short-Lived Connections    conntrack    1           2            short-lived
    [Tags]    1cpu    2rxq    short-lived
1 CPU, 4 Queues, Short-Lived Connections    conntrack    1           4            short-lived
    [Tags]    1cpu    4rxq    short-lived
1 CPU, 8 Queues, Short-Lived Connections    conntrack    1           8            short-lived
    [Tags]    1cpu    8rxq    short-lived
2 CPUs, 1 Queue, Short-Lived Connections    conntrack    2           1            short-lived
    [Tags]    2cpu    1rxq    short-lived
2 CPUs, 2 Queues, Short-Lived Connections   conntrack    2           2            short-lived
    [Tags]    2cpu    2rxq    short-lived
4 CPUs, 2 Queues, Short-Lived Connections   conntrack    4           2            short-lived
    [Tags]    4cpu    2rxq    short-lived
4 CPUs, 4 Queues, Short-Lived Connections   conntrack    4           4            short-lived
    [Tags]    4cpu    4rxq    short-lived
8 CPUs, 4 Queues, Short-Lived Connections   conntrack    8           4            short-lived
    [Tags]    8cpu    4rxq    short-lived
8 CPUs, 8 Queues, Short-Lived Connections   conntrack    8           8            short-lived
    [Tags]    8cpu    8rxq    short-lived
1 CPU, 1 Queue, Long-Lived Connections      conntrack    1           1            long-lived
    [Tags]    1cpu    1rxq    long-lived
1 CPU, 2 Queues, Long-Lived Connections     conntrack    1           2            long-lived
    [Tags]    1cpu    2rxq    long-lived
1 CPU, 4 Queues, Long-Lived Connections     conntrack    1           4            long-lived
    [Tags]    1cpu    4rxq    long-lived
1 CPU, 8 Queues, Long-Lived Connections     conntrack    1           8            long-lived
    [Tags]    1cpu    8rxq    long-lived
2 CPUs, 1 Queue, Long-Lived Connections     conntrack    2           1            long-lived
    [Tags]    2cpu    1rxq    long-lived
2 CPUs, 2 Queues, Long-Lived Connections    conntrack    2           2            long-lived
    [Tags]    2cpu    2rxq    long-lived
4 CPUs, 2 Queues, Long-Lived Connections    conntrack    4           2            long-lived
    [Tags]    4cpu    2rxq    long-lived
4 CPUs, 4 Queues, Long-Lived Connections    conntrack    4           4            long-lived
    [Tags]    4cpu    4rxq    long-lived
8 CPUs, 4 Queues, Long-Lived Connections    conntrack    8           4            long-lived
    [Tags]    8cpu    4rxq    long-lived
8 CPUs, 8 Queues, Long-Lived Connections    conntrack    8           8            long-lived
    [Tags]    8cpu    8rxq    long-lived
