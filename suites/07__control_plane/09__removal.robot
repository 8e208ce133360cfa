*** Settings ***
Documentation    An operator removes entries of a connection table that holds very many, beside new connections.
...
...              One entry, the entries of one of 64 zones, or all of them. A million are held, or what there is room for
...              in the table of the host. What the load loses meanwhile is also told as the time in which it would have
...              been blocked.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed

Test Tags        control-plane    conntrack    1cpu    1rxq    removal    long    nightly

Name             Removal


*** Test Cases ***
Removal Of One Entry, Open vSwitch
    [Tags]    ovs    ovs-dpdk
    Entry Removal Time Should Meet SLA    ovs-dpdk    conntrack    1    1    short-lived    timeout_s=120

Removal Of One Zone, Open vSwitch
    [Tags]    ovs    ovs-dpdk    zones
    Zone Removal Time Should Meet SLA    ovs-dpdk    zones    1    1    short-lived    timeout_s=120

Removal Of All Entries, Open vSwitch
    [Tags]    ovs    ovs-dpdk
    Table Removal Time Should Meet SLA    ovs-dpdk    conntrack    1    1    short-lived    timeout_s=120

Removal Of One Entry, Stateful iptables
    [Tags]    linux    router    stateful    iptables
    Entry Removal Time Should Meet SLA    linux-router    iptables-stateful    1    1    short-lived

Removal Of All Entries, Stateful iptables
    [Tags]    linux    router    stateful    iptables
    Table Removal Time Should Meet SLA    linux-router    iptables-stateful    1    1    short-lived
