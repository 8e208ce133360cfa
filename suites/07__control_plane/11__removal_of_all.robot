*** Settings ***
Documentation    An operator removes all entries of a very large connection table under a load of new connections.
...
...              A million are held, or what there is room for in the table of the host. What the load loses meanwhile is
...              also told as the time in which it would have been blocked.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Table Removal Time Should Meet SLA

Test Tags        control-plane    conntrack    1cpu    1rxq    removal    long    nightly

Name             Removal Of All


*** Test Cases ***                           DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Removal Of All Entries, Open vSwitch         ovs-dpdk        conntrack            1       1            short-lived    timeout_s=120
    [Tags]    ovs    ovs-dpdk
Removal Of All Entries, Stateful iptables    linux-router    iptables-stateful    1       1            short-lived
    [Tags]    linux    router    stateful    iptables
