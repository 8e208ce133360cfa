*** Settings ***
Documentation    The Linux kernel forwards without connection tracking.
...
...              The baseline that shows what connection tracking and NAT cost. Frames have 64 bytes unless the name
...              gives another size. Forwarding has no netfilter rules; Untracked has those of a firewall and keeps
...              the traffic out of connection tracking (NOTRACK).
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2019.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        linux    router    pps    baseline    ratio

Name             Forwarding


*** Test Cases ***                         DATAPATH        RULESET             CPUS    RX QUEUES    PROFILE
Forwarding, 1 Flow                         linux-router    forward             1       1            udp-64-1flow
    [Tags]    1cpu    1rxq    1flow    one-way    forward    not-quick
Forwarding, 10k Flows                      linux-router    forward             1       1            udp-64-10k
    [Tags]    1cpu    1rxq    10kflows    one-way    forward    acceptance
Forwarding, 10k Flows, Both Ways           linux-router    forward             1       1            udp-64-10k-both
    [Tags]    1cpu    1rxq    10kflows    both-ways    forward    not-quick
Forwarding, IMIX                           linux-router    forward             1       1            udp-imix-10k
    [Tags]    1cpu    1rxq    10kflows    imix    one-way    forward
Forwarding, 1518 Bytes                     linux-router    forward             1       1            udp-1518-10k
    [Tags]    1cpu    1rxq    10kflows    1518b    one-way    forward    not-quick
Forwarding, 1 CPU, 2 Queues, 10k Flows     linux-router    forward             1       2            udp-64-10k
    [Tags]    1cpu    2rxq    10kflows    one-way    forward    not-quick
Forwarding, 2 CPUs, 2 Queues, 10k Flows    linux-router    forward             2       2            udp-64-10k
    [Tags]    2cpu    2rxq    10kflows    one-way    forward    acceptance
Forwarding, 4 CPUs, 4 Queues, 10k Flows    linux-router    forward             4       4            udp-64-10k
    [Tags]    4cpu    4rxq    10kflows    one-way    forward    acceptance
Forwarding, 8 CPUs, 8 Queues, 10k Flows    linux-router    forward             8       8            udp-64-10k
    [Tags]    8cpu    8rxq    10kflows    one-way    forward    acceptance
Untracked, 10k Flows                       linux-router    iptables-notrack    1       1            udp-64-10k
    [Tags]    notrack    1cpu    1rxq    10kflows    one-way
