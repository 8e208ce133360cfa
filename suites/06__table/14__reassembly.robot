*** Settings ***
Documentation    What a device under test keeps of datagrams whose fragments do not all come.
...
...              Twice as many datagrams of three fragments are offered as it serves, three times. It gives up the fragments
...              that stay, no entry outlives its timeout, its memory does not grow each time, and afterwards it loses no
...              datagram of a load that it can take.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Reassembly Time Should Meet SLA

Test Tags        table    conntrack    1cpu    1rxq    reassembly    nightly

Name             Reassembly


*** Test Cases ***                DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Reassembly, Open vSwitch          ovs-dpdk        conntrack            1       1            udp-fragments    timeout_s=5
    [Tags]    ovs    ovs-dpdk
Reassembly, Stateful iptables     linux-router    iptables-stateful    1       1            udp-fragments    timeout_s=5
    [Tags]    linux    router    stateful    iptables
