*** Settings ***
Documentation    A bridge of the Linux kernel over bonds.
...
...              These tests are skipped if the kernel has no bonds.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    bridge    bond    1cpu    1rxq    pps    10kflows    one-way    baseline    forward    ratio

Name             Linux Bridge Over Bonds


*** Test Cases ***                     DATAPATH        RULESET    CPUS    RX QUEUES    PROFILE
Bonds, 64 Bytes, 10k Flows             linux-bridge    forward    1       1            udp-64-10k         ports=bond
Bonds, 1518 Bytes, 10k Flows           linux-bridge    forward    1       1            udp-1518-10k       ports=bond
    [Tags]    1518b
Bonds And VLAN, 64 Bytes, 10k Flows    linux-bridge    forward    1       1            udp-64-10k-vlan    ports=bond-vlan
    [Tags]    vlan
Bonds, 9018 Bytes, 10k Flows           linux-bridge    forward    1       1            udp-9018           ports=bond    mtu=9000
    [Tags]    jumbo    nightly
