*** Settings ***
Documentation    How many connections per second the Linux kernel sets up and takes down, by what they do.
...
...              The kinds of the measurements of 2017 (TCP without data, HTTP, UDP), connections that the server closes
...              or the client resets, connections during a SYN flood, and those of IPv6. Each is compared with
...              short-lived connections, side by side.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        linux    router    1cpu    1rxq    cps    ratio    nightly

Name             Connection Kinds


*** Test Cases ***                      DATAPATH        RULESET                   CPUS    RX QUEUES    PROFILE
Stateful iptables, TCP Without Data     linux-router    iptables-stateful         1       1            tcp-no-data
    [Tags]    conntrack    stateful    iptables    tcp-no-data
Stateful iptables, HTTP, 600 Bytes      linux-router    iptables-stateful         1       1            http-600
    [Tags]    conntrack    stateful    iptables    http-600
Stateful iptables, HTTP, 800 Bytes      linux-router    iptables-stateful         1       1            http-800
    [Tags]    conntrack    stateful    iptables    http-800
Stateful iptables, UDP, 800 Bytes       linux-router    iptables-stateful         1       1            udp-800
    [Tags]    conntrack    stateful    iptables    udp-800
Stateful iptables, Server Closes        linux-router    iptables-stateful         1       1            short-lived-server-closes
    [Tags]    conntrack    stateful    iptables    short-lived-server-closes
Stateful iptables, Client Resets        linux-router    iptables-stateful         1       1            short-lived-reset
    [Tags]    conntrack    stateful    iptables    short-lived-reset
Stateful iptables, Half-Open Beside     linux-router    iptables-stateful         1       1            short-lived-half-open
    [Tags]    conntrack    stateful    iptables    short-lived-half-open
Forwarding, IPv6 Connections            linux-router    forward-ipv6              1       1            short-lived-ipv6
    [Tags]    ipv6    short-lived-ipv6    baseline    forward
Stateful ip6tables, IPv6 Connections    linux-router    ip6tables-stateful        1       1            short-lived-ipv6
    [Tags]    conntrack    stateful    ip6tables    ipv6    short-lived-ipv6
Stateful nftables, IPv6 Connections     linux-router    nftables-stateful-inet    1       1            short-lived-ipv6
    [Tags]    conntrack    stateful    nftables    ipv6    short-lived-ipv6
