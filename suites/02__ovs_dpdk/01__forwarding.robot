*** Settings ***
Documentation    Open vSwitch with DPDK forwards without connection tracking.
...
...              The baseline that shows what connection tracking costs. More queues or CPUs are compared with one of each.
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2022.yaml.
...              A row without a rate there is promised of a candidate: of_build.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    forward    cps    pps    baseline    ratio

Name             Without Conntrack


*** Test Cases ***                             DATAPATH    RULESET    CPUS    RX QUEUES    PROFILE
No Conntrack, 1 CPU, 1 Queue, Short-Lived      ovs-dpdk    forward    1       1            short-lived
    [Tags]    1cpu    1rxq    short-lived    acceptance
No Conntrack, 1 CPU, 2 Queues, Short-Lived     ovs-dpdk    forward    1       2            short-lived
    [Tags]    1cpu    2rxq    short-lived    nightly
No Conntrack, 1 CPU, 4 Queues, Short-Lived     ovs-dpdk    forward    1       4            short-lived
    [Tags]    1cpu    4rxq    short-lived    nightly
No Conntrack, 1 CPU, 8 Queues, Short-Lived     ovs-dpdk    forward    1       8            short-lived
    [Tags]    1cpu    8rxq    short-lived    nightly
No Conntrack, 2 CPUs, 1 Queue, Short-Lived     ovs-dpdk    forward    2       1            short-lived
    [Tags]    2cpu    1rxq    short-lived    nightly
No Conntrack, 2 CPUs, 2 Queues, Short-Lived    ovs-dpdk    forward    2       2            short-lived
    [Tags]    2cpu    2rxq    short-lived    nightly
No Conntrack, 4 CPUs, 2 Queues, Short-Lived    ovs-dpdk    forward    4       2            short-lived
    [Tags]    4cpu    2rxq    short-lived    nightly
No Conntrack, 4 CPUs, 4 Queues, Short-Lived    ovs-dpdk    forward    4       4            short-lived
    [Tags]    4cpu    4rxq    short-lived    nightly
No Conntrack, 8 CPUs, 4 Queues, Short-Lived    ovs-dpdk    forward    8       4            short-lived
    [Tags]    8cpu    4rxq    short-lived    nightly
No Conntrack, 8 CPUs, 8 Queues, Short-Lived    ovs-dpdk    forward    8       8            short-lived
    [Tags]    8cpu    8rxq    short-lived    nightly
No Conntrack, 1 CPU, 1 Queue, Long-Lived       ovs-dpdk    forward    1       1            long-lived
    [Tags]    1cpu    1rxq    long-lived    acceptance
No Conntrack, 1 CPU, 2 Queues, Long-Lived      ovs-dpdk    forward    1       2            long-lived
    [Tags]    1cpu    2rxq    long-lived    nightly
No Conntrack, 1 CPU, 4 Queues, Long-Lived      ovs-dpdk    forward    1       4            long-lived
    [Tags]    1cpu    4rxq    long-lived    nightly
No Conntrack, 1 CPU, 8 Queues, Long-Lived      ovs-dpdk    forward    1       8            long-lived
    [Tags]    1cpu    8rxq    long-lived    nightly
No Conntrack, 2 CPUs, 1 Queue, Long-Lived      ovs-dpdk    forward    2       1            long-lived
    [Tags]    2cpu    1rxq    long-lived    nightly
No Conntrack, 2 CPUs, 2 Queues, Long-Lived     ovs-dpdk    forward    2       2            long-lived
    [Tags]    2cpu    2rxq    long-lived    nightly
No Conntrack, 4 CPUs, 2 Queues, Long-Lived     ovs-dpdk    forward    4       2            long-lived
    [Tags]    4cpu    2rxq    long-lived    nightly
No Conntrack, 4 CPUs, 4 Queues, Long-Lived     ovs-dpdk    forward    4       4            long-lived
    [Tags]    4cpu    4rxq    long-lived    nightly
No Conntrack, 8 CPUs, 4 Queues, Long-Lived     ovs-dpdk    forward    8       4            long-lived
    [Tags]    8cpu    4rxq    long-lived    nightly
No Conntrack, 8 CPUs, 8 Queues, Long-Lived     ovs-dpdk    forward    8       8            long-lived
    [Tags]    8cpu    8rxq    long-lived    nightly
