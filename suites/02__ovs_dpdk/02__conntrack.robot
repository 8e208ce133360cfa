*** Settings ***
Documentation    Open vSwitch with DPDK tracks every connection.
...
...              Only clients may open connections; servers may only answer them. The topologies
...              with more than one CPU, and the one with 1 CPU and 1 queue, are those that were published for OVS
...              2.17.2 and 3.0.0. Queues are receive queues per port. More queues or CPUs are compared with one of
...              each.
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2022.yaml.
...              A row without a rate there is promised of a candidate: of_build.
...              ``./run sla --argumentfile test_lists/gate.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    cps    pps

Name             Conntrack


*** Test Cases ***                           DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
1 CPU, 1 Queue, Short-Lived Connections      ovs-dpdk    conntrack    1       1            short-lived
    [Tags]    1cpu    1rxq    short-lived    acceptance
1 CPU, 2 Queues, Short-Lived Connections     ovs-dpdk    conntrack    1       2            short-lived
    [Tags]    1cpu    2rxq    short-lived    ratio    acceptance
1 CPU, 4 Queues, Short-Lived Connections     ovs-dpdk    conntrack    1       4            short-lived
    [Tags]    1cpu    4rxq    short-lived    ratio    acceptance
1 CPU, 8 Queues, Short-Lived Connections     ovs-dpdk    conntrack    1       8            short-lived
    [Tags]    1cpu    8rxq    short-lived    ratio    acceptance
2 CPUs, 1 Queue, Short-Lived Connections     ovs-dpdk    conntrack    2       1            short-lived
    [Tags]    2cpu    1rxq    short-lived    ratio    acceptance
2 CPUs, 2 Queues, Short-Lived Connections    ovs-dpdk    conntrack    2       2            short-lived
    [Tags]    2cpu    2rxq    short-lived    ratio    acceptance
4 CPUs, 2 Queues, Short-Lived Connections    ovs-dpdk    conntrack    4       2            short-lived
    [Tags]    4cpu    2rxq    short-lived    ratio    acceptance
4 CPUs, 4 Queues, Short-Lived Connections    ovs-dpdk    conntrack    4       4            short-lived
    [Tags]    4cpu    4rxq    short-lived    ratio    acceptance
8 CPUs, 4 Queues, Short-Lived Connections    ovs-dpdk    conntrack    8       4            short-lived
    [Tags]    8cpu    4rxq    short-lived    ratio    acceptance
8 CPUs, 8 Queues, Short-Lived Connections    ovs-dpdk    conntrack    8       8            short-lived
    [Tags]    8cpu    8rxq    short-lived    ratio    acceptance
1 CPU, 1 Queue, Long-Lived Connections       ovs-dpdk    conntrack    1       1            long-lived
    [Tags]    1cpu    1rxq    long-lived    ratio    acceptance
1 CPU, 2 Queues, Long-Lived Connections      ovs-dpdk    conntrack    1       2            long-lived
    [Tags]    1cpu    2rxq    long-lived    ratio    not-quick
1 CPU, 4 Queues, Long-Lived Connections      ovs-dpdk    conntrack    1       4            long-lived
    [Tags]    1cpu    4rxq    long-lived    ratio    not-quick
1 CPU, 8 Queues, Long-Lived Connections      ovs-dpdk    conntrack    1       8            long-lived
    [Tags]    1cpu    8rxq    long-lived    ratio    not-quick
2 CPUs, 1 Queue, Long-Lived Connections      ovs-dpdk    conntrack    2       1            long-lived
    [Tags]    2cpu    1rxq    long-lived    ratio
2 CPUs, 2 Queues, Long-Lived Connections     ovs-dpdk    conntrack    2       2            long-lived
    [Tags]    2cpu    2rxq    long-lived    ratio    acceptance
4 CPUs, 2 Queues, Long-Lived Connections     ovs-dpdk    conntrack    4       2            long-lived
    [Tags]    4cpu    2rxq    long-lived    ratio
4 CPUs, 4 Queues, Long-Lived Connections     ovs-dpdk    conntrack    4       4            long-lived
    [Tags]    4cpu    4rxq    long-lived    ratio    acceptance
8 CPUs, 4 Queues, Long-Lived Connections     ovs-dpdk    conntrack    8       4            long-lived
    [Tags]    8cpu    4rxq    long-lived    ratio
8 CPUs, 8 Queues, Long-Lived Connections     ovs-dpdk    conntrack    8       8            long-lived
    [Tags]    8cpu    8rxq    long-lived    ratio    acceptance
