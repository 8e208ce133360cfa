*** Settings ***
Documentation    The Linux kernel forwards over VLAN devices and bonds.
...
...              Without connection tracking. Frames have 64 bytes, and are tagged with VLAN 100 where the name says so.
...              These tests are skipped where the kernel has no such devices.

Resource         ../../resources/linux.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Of Linux Router Should Meet SLA

Test Tags        linux    router    forwarding    pps    1cpu    1rxq    10kflows    one-way

Name             Forwarding Over Bonds And VLANs


*** Test Cases ***          RULESET      CPUS    RX QUEUES    PROFILE
VLAN, 10k Flows             vlan         1       1            udp-64-10k-vlan
    [Tags]    vlan
Bond, 10k Flows             bond         1       1            udp-64-10k
    [Tags]    bond
Bond And VLAN, 10k Flows    bond-vlan    1       1            udp-64-10k-vlan
    [Tags]    bond    vlan
