*** Settings ***
Documentation    How many connections per second Open vSwitch with DPDK sets up and takes down, by what they do.
...
...              The kinds of the measurements of 2017 (TCP without data, HTTP, UDP), connections that the server closes
...              or the client resets, connections during a SYN flood, and those of IPv6. Each is compared with
...              short-lived connections, side by side.
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2017.yaml.
...              A row without a rate there is promised of a candidate: of_build.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    1cpu    1rxq    cps    ratio    nightly

Name             Connection Kinds


*** Test Cases ***                   DATAPATH    RULESET           CPUS    RX QUEUES    PROFILE
TCP Without Data                     ovs-dpdk    conntrack         1       1            tcp-no-data
    [Tags]    tcp-no-data
HTTP, 600 Bytes                      ovs-dpdk    conntrack         1       1            http-600
    [Tags]    http-600
HTTP, 800 Bytes                      ovs-dpdk    conntrack         1       1            http-800
    [Tags]    http-800
UDP, 800 Bytes                       ovs-dpdk    conntrack         1       1            udp-800
    [Tags]    udp-800
Server Closes First                  ovs-dpdk    conntrack         1       1            short-lived-server-closes
    [Tags]    short-lived-server-closes
Client Resets                        ovs-dpdk    conntrack         1       1            short-lived-reset
    [Tags]    short-lived-reset
Beside Half-Open Connections         ovs-dpdk    conntrack         1       1            short-lived-half-open
    [Tags]    short-lived-half-open
IPv6 Connections                     ovs-dpdk    conntrack-ipv6    1       1            short-lived-ipv6
    [Tags]    ipv6    short-lived-ipv6
