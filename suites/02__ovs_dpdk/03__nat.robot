*** Settings ***
Documentation    Open vSwitch with DPDK translates the clients' addresses (SNAT) while it tracks their connections.
...
...              More queues or CPUs are compared with one of each.
...
...              Floors: variables/sla/local.yaml.
...              A row without a rate there is promised of a candidate: of_build.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    nat    snat    cps    pps    ratio

Name             SNAT


*** Test Cases ***                     DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
SNAT, 1 CPU, 1 Queue, Short-Lived      ovs-dpdk    nat        1       1            short-lived
    [Tags]    1cpu    1rxq    short-lived    acceptance
SNAT, 1 CPU, 2 Queues, Short-Lived     ovs-dpdk    nat        1       2            short-lived
    [Tags]    1cpu    2rxq    short-lived    nightly
SNAT, 1 CPU, 4 Queues, Short-Lived     ovs-dpdk    nat        1       4            short-lived
    [Tags]    1cpu    4rxq    short-lived    nightly
SNAT, 1 CPU, 8 Queues, Short-Lived     ovs-dpdk    nat        1       8            short-lived
    [Tags]    1cpu    8rxq    short-lived    nightly
SNAT, 2 CPUs, 1 Queue, Short-Lived     ovs-dpdk    nat        2       1            short-lived
    [Tags]    2cpu    1rxq    short-lived    nightly
SNAT, 2 CPUs, 2 Queues, Short-Lived    ovs-dpdk    nat        2       2            short-lived
    [Tags]    2cpu    2rxq    short-lived    nightly
SNAT, 4 CPUs, 2 Queues, Short-Lived    ovs-dpdk    nat        4       2            short-lived
    [Tags]    4cpu    2rxq    short-lived    nightly
SNAT, 4 CPUs, 4 Queues, Short-Lived    ovs-dpdk    nat        4       4            short-lived
    [Tags]    4cpu    4rxq    short-lived    nightly
SNAT, 8 CPUs, 4 Queues, Short-Lived    ovs-dpdk    nat        8       4            short-lived
    [Tags]    8cpu    4rxq    short-lived    nightly
SNAT, 8 CPUs, 8 Queues, Short-Lived    ovs-dpdk    nat        8       8            short-lived
    [Tags]    8cpu    8rxq    short-lived    nightly
SNAT, 1 CPU, 1 Queue, Long-Lived       ovs-dpdk    nat        1       1            long-lived
    [Tags]    1cpu    1rxq    long-lived    acceptance
SNAT, 1 CPU, 2 Queues, Long-Lived      ovs-dpdk    nat        1       2            long-lived
    [Tags]    1cpu    2rxq    long-lived    nightly
SNAT, 1 CPU, 4 Queues, Long-Lived      ovs-dpdk    nat        1       4            long-lived
    [Tags]    1cpu    4rxq    long-lived    nightly
SNAT, 1 CPU, 8 Queues, Long-Lived      ovs-dpdk    nat        1       8            long-lived
    [Tags]    1cpu    8rxq    long-lived    nightly
SNAT, 2 CPUs, 1 Queue, Long-Lived      ovs-dpdk    nat        2       1            long-lived
    [Tags]    2cpu    1rxq    long-lived    nightly
SNAT, 2 CPUs, 2 Queues, Long-Lived     ovs-dpdk    nat        2       2            long-lived
    [Tags]    2cpu    2rxq    long-lived    nightly
SNAT, 4 CPUs, 2 Queues, Long-Lived     ovs-dpdk    nat        4       2            long-lived
    [Tags]    4cpu    2rxq    long-lived    nightly
SNAT, 4 CPUs, 4 Queues, Long-Lived     ovs-dpdk    nat        4       4            long-lived
    [Tags]    4cpu    4rxq    long-lived    nightly
SNAT, 8 CPUs, 4 Queues, Long-Lived     ovs-dpdk    nat        8       4            long-lived
    [Tags]    8cpu    4rxq    long-lived    nightly
SNAT, 8 CPUs, 8 Queues, Long-Lived     ovs-dpdk    nat        8       8            long-lived
    [Tags]    8cpu    8rxq    long-lived    nightly
