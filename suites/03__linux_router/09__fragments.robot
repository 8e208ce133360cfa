*** Settings ***
Documentation    The Linux kernel tracks connections whose datagrams are longer than a frame, compared with forwarding.
...
...              A packet of the rate is a datagram of two to four fragments, and is lost where one of them is.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags    linux
...          router
...          conntrack
...          stateful
...          iptables
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


*** Test Cases ***                                         DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, 2 Fragments Of 1518 Bytes, Both Ways    linux-router    iptables-stateful    1       1            udp-fragments-2
Stateful iptables, 3 Fragments Of 1518 Bytes, Both Ways    linux-router    iptables-stateful    1       1            udp-fragments
Stateful iptables, 4 Fragments Of 1518 Bytes, Both Ways    linux-router    iptables-stateful    1       1            udp-fragments-4
