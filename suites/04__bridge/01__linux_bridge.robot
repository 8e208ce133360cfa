*** Settings ***
Documentation    A bridge of the Linux kernel between the two ports.
...
...              Compared with the kernel's router. VLANs and bonds of the kernel are promised in instructions
...              (05__emulated).
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    bridge    1cpu    1rxq    pps    baseline    forward    ratio

Name             Linux Bridge


*** Test Cases ***                              DATAPATH        RULESET    CPUS    RX QUEUES    PROFILE
Linux Bridge, 64 Bytes, 1 Flow                  linux-bridge    forward    1       1            udp-64-1flow
    [Tags]    1flow    one-way    not-quick
Linux Bridge, 64 Bytes, 10k Flows               linux-bridge    forward    1       1            udp-64-10k
    [Tags]    10kflows    one-way    acceptance
Linux Bridge, 64 Bytes, 10k Flows, Both Ways    linux-bridge    forward    1       1            udp-64-10k-both
    [Tags]    10kflows    both-ways    not-quick
Linux Bridge, 1518 Bytes, 10k Flows             linux-bridge    forward    1       1            udp-1518-10k
    [Tags]    10kflows    1518b    one-way    not-quick
Linux Bridge, 9018 Bytes, 10k Flows             linux-bridge    forward    1       1            udp-9018           mtu=9000
    [Tags]    10kflows    jumbo    one-way    not-quick
