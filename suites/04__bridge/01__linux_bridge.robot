*** Settings ***
Documentation    A bridge of the Linux kernel between the two ports.
...
...              Compared with the kernel's router, and with a VLAN with the bridge without. Tests with a VLAN are
...              skipped if the kernel cannot filter by VLAN.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Packet Rate

Name             Linux Bridge


*** Test Cases ***                              DATAPATH        RULESET    CPUS    RX QUEUES    PROFILE
Linux Bridge, 64 Bytes, 1 Flow                  linux-bridge    forward    1       1            udp-64-1flow
Linux Bridge, 64 Bytes, 10k Flows               linux-bridge    forward    1       1            udp-64-10k
Linux Bridge, 64 Bytes, 10k Flows, Both Ways    linux-bridge    forward    1       1            udp-64-10k-both
Linux Bridge, 1518 Bytes, 10k Flows             linux-bridge    forward    1       1            udp-1518-10k
Linux Bridge, 9018 Bytes, 10k Flows             linux-bridge    forward    1       1            udp-9018           mtu=9000
Linux Bridge, VLAN, 64 Bytes, 10k Flows         linux-bridge    forward    1       1            udp-64-10k-vlan    ports=vlan
