*** Settings ***
Documentation    The Linux kernel by the rules of the measurement of 2019: two rules for what is established, which drop
...              nothing, and SNAT to one address without a filter.
...
...              Each is compared with the rules of the other rows, or where both ends open flows, 20 000 in all, with
...              forwarding. Frames have 64 bytes.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    router    1cpu    1rxq    pps    10kflows    ratio    nightly

Name             Published Rules


*** Test Cases ***                                   DATAPATH        RULESET                 CPUS    RX QUEUES    PROFILE
Two Rules With iptables, 10k Flows                   linux-router    iptables-established    1       1            udp-64-10k
    [Tags]    conntrack    stateful    iptables    one-way
SNAT With iptables, One Address, 10k Flows           linux-router    iptables-snat-only      1       1            udp-64-10k
    [Tags]    conntrack    nat    snat    iptables    one-way
Forwarding, Both Ends Open, Both Ways                linux-router    forward                 1       1            udp-64-10k-each
    [Tags]    both-ways    baseline    forward
Two Rules With iptables, Both Ends Open, Both Ways   linux-router    iptables-established    1       1            udp-64-10k-each
    [Tags]    conntrack    stateful    iptables    both-ways
SNAT With iptables, Both Ends Open, Both Ways        linux-router    iptables-snat-only      1       1            udp-64-10k-each
    [Tags]    conntrack    nat    snat    iptables    both-ways
