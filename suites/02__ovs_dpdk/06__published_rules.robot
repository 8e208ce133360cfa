*** Settings ***
Documentation    Open vSwitch with DPDK by the rules of the 2022 article as they were published, next to those of
...              the other rows: ``normal`` (tables 2 and 3), and four rules that end in it (tables 4 and 5).
...
...              A lab measures with both what the difference is. Each is compared with the rules of conntrack.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.
...              Published rates: variables/sla/published-2022.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    1cpu    1rxq    cps    pps    ratio    nightly

Name             Published Rules


*** Test Cases ***                     DATAPATH    RULESET             CPUS    RX QUEUES    PROFILE
Learning Bridge, Short-Lived           ovs-dpdk    normal              1       1            short-lived
    [Tags]    bridge    short-lived    baseline
Learning Bridge, Long-Lived            ovs-dpdk    normal              1       1            long-lived
    [Tags]    bridge    long-lived    baseline
Conntrack As Published, Short-Lived    ovs-dpdk    conntrack-normal    1       1            short-lived
    [Tags]    conntrack    short-lived
Conntrack As Published, Long-Lived     ovs-dpdk    conntrack-normal    1       1            long-lived
    [Tags]    conntrack    long-lived
