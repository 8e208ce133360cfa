*** Settings ***
Documentation    An operator removes the entries of one of 64 zones under a load of new connections.
...
...              A million are held, or what there is room for in the table of the host. What the load loses meanwhile is
...              also told as the time in which it would have been blocked.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Zone Removal Time Should Meet SLA

Test Tags        control-plane    conntrack    1cpu    1rxq    removal    long    nightly    zones

Name             Removal Of A Zone


*** Test Cases ***                   DATAPATH        RULESET           CPUS    RX QUEUES    PROFILE
Removal Of One Zone, Open vSwitch    ovs-dpdk        zones             1       1            short-lived    timeout_s=120
    [Tags]    ovs    ovs-dpdk
Removal Of One Zone, nftables        linux-router    nftables-zones    1       1            short-lived
    [Tags]    linux    router    stateful    nftables
