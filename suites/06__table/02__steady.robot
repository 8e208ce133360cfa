*** Settings ***
Documentation    Whether the connection table settles.
...
...              Connections of a lifetime at a rate, for longer than they are remembered: a sweep of the table leaves as many
...              as begin in a lifetime and a timeout, and finds as many more as begin between two sweeps. Every timeout is
...              5 s. Rates and lifetimes of those that live for 5 s are those of 2017 (slides 15 and 16).
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Table Level Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    steady    nightly

Name             Table Steady State


*** Test Cases ***                          DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Steady Table, Open vSwitch                  ovs-dpdk        conntrack            1       1            steady         timeout_s=5
    [Tags]    ovs    ovs-dpdk
Steady Table, Stateful iptables             linux-router    iptables-stateful    1       1            steady         timeout_s=5
    [Tags]    linux    router    stateful    iptables
Steady Table, 50k CPS, Open vSwitch         ovs-dpdk        conntrack            1       1            steady-50k     timeout_s=5
    [Tags]    ovs    ovs-dpdk
Steady Table, 100k CPS, Open vSwitch        ovs-dpdk        conntrack            1       1            steady-100k    timeout_s=5
    [Tags]    ovs    ovs-dpdk
Steady Table, 5k CPS, Stateful iptables     linux-router    iptables-stateful    1       1            steady-5k      timeout_s=5
    [Tags]    linux    router    stateful    iptables
Steady Table, 10k CPS, Stateful iptables    linux-router    iptables-stateful    1       1            steady-10k     timeout_s=5
    [Tags]    linux    router    stateful    iptables
Steady Table, 20k CPS, Stateful iptables    linux-router    iptables-stateful    1       1            steady-20k     timeout_s=5
    [Tags]    linux    router    stateful    iptables
Steady Table, 50k CPS, Stateful iptables    linux-router    iptables-stateful    1       1            steady-50k     timeout_s=5
    [Tags]    linux    router    stateful    iptables
Steady Table, 200k CPS, 4 CPUs, 4 Queues    ovs-dpdk        conntrack            4       4            steady-200k    timeout_s=25
    ...    max_connections=7000000
    [Tags]    ovs    ovs-dpdk    4cpu    4rxq    -1cpu    -1rxq
