*** Settings ***
Documentation    Open vSwitch with DPDK tracks connections whose datagrams are longer than a frame, compared with forwarding.
...
...              A packet of the rate is a datagram of two to four fragments, and is lost where one of them is.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags    ovs
...          ovs-dpdk
...          conntrack
...          1cpu
...          1rxq
...          pps
...          10kflows
...          both-ways
...          1518b
...          fragments
...          ratio
...          nightly

Name             Fragments


*** Test Cases ***                                 DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Conntrack, 2 Fragments Of 1518 Bytes, Both Ways    ovs-dpdk    conntrack    1       1            udp-fragments-2
Conntrack, 3 Fragments Of 1518 Bytes, Both Ways    ovs-dpdk    conntrack    1       1            udp-fragments
Conntrack, 4 Fragments Of 1518 Bytes, Both Ways    ovs-dpdk    conntrack    1       1            udp-fragments-4
