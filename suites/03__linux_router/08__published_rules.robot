*** Settings ***
Documentation    The Linux kernel by the rules of the measurement of 2019: two rules for what is established, which drop
...              nothing, and SNAT to one address without a filter.
...
...              Each is compared with the rules of the other rows. Frames have 64 bytes.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags    linux
...          router
...          conntrack
...          iptables
...          1cpu
...          1rxq
...          pps
...          10kflows
...          one-way
...          ratio
...          nightly

Name             Published Rules


*** Test Cases ***                                   DATAPATH        RULESET                 CPUS    RX QUEUES    PROFILE
Two Rules With iptables, 10k Flows                   linux-router    iptables-established    1       1            udp-64-10k
    [Tags]    stateful
SNAT With iptables, One Address, 10k Flows           linux-router    iptables-snat-only      1       1            udp-64-10k
    [Tags]    nat    snat
