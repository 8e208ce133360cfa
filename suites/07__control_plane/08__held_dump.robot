*** Settings ***
Documentation    An operator prints a connection table that holds very many connections, which are asked something
...              meanwhile.
...
...              How many are held is in the SLA: 10 000 of them are remembered for 180 s, 100 000 for 300 s, a million
...              or more for 900 s.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Held Dump Time Should Meet SLA

Test Tags        control-plane    conntrack    1cpu    1rxq    dump    long

Name             Dump Of Held Connections


*** Test Cases ***                      DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Dump Of 100 000, Open vSwitch           ovs-dpdk        conntrack            1       1            held       timeout_s=300
    [Tags]    ovs    ovs-dpdk
Dump Of A Million, Open vSwitch         ovs-dpdk        conntrack            1       1            held       timeout_s=900
    [Tags]    ovs    ovs-dpdk
Dump Of 3 Million, UDP, Open vSwitch    ovs-dpdk        conntrack            1       1            held-udp    timeout_s=900
    [Tags]    ovs    ovs-dpdk    nightly    scale
Dump Of 10 000, Stateful iptables       linux-router    iptables-stateful    1       1            held       timeout_s=180
    [Tags]    linux    router    stateful    iptables
Dump Of 100 000, Stateful iptables      linux-router    iptables-stateful    1       1            held       timeout_s=300
    [Tags]    linux    router    stateful    iptables
Dump Of A Million, Stateful iptables    linux-router    iptables-stateful    1       1            held       timeout_s=900
    [Tags]    linux    router    stateful    iptables
