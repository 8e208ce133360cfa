*** Settings ***
Documentation    A bridge of the Linux kernel between the two ports.
...
...              Large frames are about throughput, which their floors promise as well. Tests with a VLAN are skipped
...              where the kernel cannot filter by VLAN.

Resource         ../../resources/linux.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Of Linux Bridge Should Meet SLA

Test Tags        linux    bridge    pps    1cpu    1rxq

Name             Linux Bridge


*** Test Cases ***                              RULESET    CPUS    RX QUEUES    MTU     PROFILE
Linux Bridge, 64 Bytes, 1 Flow                  forward    1       1            1500    udp-64-1flow
    [Tags]    1flow    one-way
Linux Bridge, 64 Bytes, 10k Flows               forward    1       1            1500    udp-64-10k
    [Tags]    10kflows    one-way
Linux Bridge, 64 Bytes, 10k Flows, Both Ways    forward    1       1            1500    udp-64-10k-both
    [Tags]    10kflows    both-ways
Linux Bridge, 1518 Bytes, 10k Flows             forward    1       1            1500    udp-1518-10k
    [Tags]    10kflows    one-way    1518b
Linux Bridge, 9018 Bytes, 10k Flows             forward    1       1            9000    udp-9018
    [Tags]    10kflows    one-way    jumbo
Linux Bridge, VLAN, 64 Bytes, 10k Flows         vlan       1       1            1500    udp-64-10k-vlan
    [Tags]    10kflows    one-way    vlan
