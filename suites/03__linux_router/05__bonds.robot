*** Settings ***
Documentation    The Linux kernel forwards over VLAN devices and bonds.
...
...              Without connection tracking. Frames have 64 bytes, and are tagged with VLAN 100 if the name says so.
...              These tests are skipped if the kernel has no such devices.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    router    1cpu    1rxq    pps    10kflows    one-way    baseline    forward    ratio

Name             Forwarding Over Bonds And VLANs


*** Test Cases ***          DATAPATH        RULESET    CPUS    RX QUEUES    PROFILE
VLAN, 10k Flows             linux-router    forward    1       1            udp-64-10k-vlan    ports=vlan
    [Tags]    vlan
Bond, 10k Flows             linux-router    forward    1       1            udp-64-10k         ports=bond
    [Tags]    bond
Bond And VLAN, 10k Flows    linux-router    forward    1       1            udp-64-10k-vlan    ports=bond-vlan
    [Tags]    vlan    bond
