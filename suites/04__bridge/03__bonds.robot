*** Settings ***
Documentation    A bridge of the Linux kernel over bonds.
...
...              These tests are skipped where the kernel has no bonds.

Resource         ../../resources/linux.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Of Linux Bridge Should Meet SLA

Test Tags        linux    bridge    bond    pps    1cpu    1rxq    10kflows    one-way

Name             Linux Bridge Over Bonds


*** Test Cases ***                       RULESET      CPUS    RX QUEUES    MTU     PROFILE
Bonds, 64 Bytes, 10k Flows               bond         1       1            1500    udp-64-10k
Bonds, 1518 Bytes, 10k Flows             bond         1       1            1500    udp-1518-10k
    [Tags]    1518b
Bonds And VLAN, 64 Bytes, 10k Flows      bond-vlan    1       1            1500    udp-64-10k-vlan
    [Tags]    vlan
