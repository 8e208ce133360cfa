*** Settings ***
Documentation    What a connection takes of the DUT's memory, and what stays of it.
...
...              The table of a new DUT is filled, emptied and filled again, three times, or twice where memory has no
...              room for more: a sound DUT takes no more than the first time, one that leaks grows with each fill. The
...              table is flushed, or with timeouts of 10 s left to expire.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Memory Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    memory

Name             Memory


*** Test Cases ***                    DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Memory, Open vSwitch                  ovs-dpdk        conntrack            1       1            held       timeout_s=60
    [Tags]    ovs    ovs-dpdk
Memory, SNAT, Open vSwitch            ovs-dpdk        nat                  1       1            held       timeout_s=60
    [Tags]    ovs    ovs-dpdk    nat    snat    nightly
Memory After Expiry, Open vSwitch     ovs-dpdk        conntrack            1       1            held       timeout_s=10
    [Tags]    ovs    ovs-dpdk    nightly
Memory, Stateful iptables             linux-router    iptables-stateful    1       1            held       timeout_s=60
    [Tags]    linux    router    stateful    iptables    nightly
Memory Of 10 Million, Open vSwitch    ovs-dpdk        conntrack            1       1            held       timeout_s=900
    ...    max_connections=10000000
    [Tags]    ovs    ovs-dpdk    nightly
