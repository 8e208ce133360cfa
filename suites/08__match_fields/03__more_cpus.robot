*** Settings ***
Documentation    What the fields cost that the rules of Open vSwitch match, with connection tracking, on more CPUs than one.
...
...              Rules that match addresses and ports are compared with rules that match no field, and those with the rules
...              of conntrack, each with as many CPUs.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    match-fields    pps    100kflows    both-ways    ratio    nightly

Name             Match Fields, More CPUs


*** Test Cases ***                                     DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
No Field, 2 CPUs, 2 Queues, 100k Flows, Both Ways      ovs-dpdk    match-none       2       2            match-100k
    [Tags]    2cpu    2rxq
No Field, 4 CPUs, 4 Queues, 100k Flows, Both Ways      ovs-dpdk    match-none       4       4            match-100k
    [Tags]    4cpu    4rxq
No Field, 8 CPUs, 8 Queues, 100k Flows, Both Ways      ovs-dpdk    match-none       8       8            match-100k
    [Tags]    8cpu    8rxq
4-Tuple, 2 CPUs, 2 Queues, 100k Flows, Both Ways       ovs-dpdk    match-4-tuple    2       2            match-100k
    [Tags]    2cpu    2rxq
4-Tuple, 4 CPUs, 4 Queues, 100k Flows, Both Ways       ovs-dpdk    match-4-tuple    4       4            match-100k
    [Tags]    4cpu    4rxq
4-Tuple, 8 CPUs, 8 Queues, 100k Flows, Both Ways       ovs-dpdk    match-4-tuple    8       8            match-100k
    [Tags]    8cpu    8rxq
