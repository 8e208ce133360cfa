*** Settings ***
Documentation    What the fields cost that the rules of Open vSwitch match, with connection tracking.
...
...              Each is compared with rules that match no field, of as many flows (slides 12 to 14 of 2017); those, with
...              the rules of conntrack.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it, and the row that is
...              not nightly also ``test_lists/gate.args --candidate BUILD``.
...              Published rates: variables/sla/published-2017.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    match-fields    1cpu    1rxq    pps    both-ways    ratio    nightly

Name             Match Fields


*** Test Cases ***                 DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
No Field, 1k Flows, Both Ways      ovs-dpdk    match-none       1       1            match-1k
    [Tags]    1kflows
Source, 1k Flows, Both Ways        ovs-dpdk    match-src        1       1            match-1k
    [Tags]    1kflows
2-Tuple, 1k Flows, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1k
    [Tags]    1kflows
4-Tuple, 1k Flows, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1k
    [Tags]    1kflows
5-Tuple, 1k Flows, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1k
    [Tags]    1kflows
No Field, 10k Flows, Both Ways     ovs-dpdk    match-none       1       1            match-10k
    [Tags]    10kflows
Source, 10k Flows, Both Ways       ovs-dpdk    match-src        1       1            match-10k
    [Tags]    10kflows
2-Tuple, 10k Flows, Both Ways      ovs-dpdk    match-2-tuple    1       1            match-10k
    [Tags]    10kflows
4-Tuple, 10k Flows, Both Ways      ovs-dpdk    match-4-tuple    1       1            match-10k
    [Tags]    10kflows
5-Tuple, 10k Flows, Both Ways      ovs-dpdk    match-5-tuple    1       1            match-10k
    [Tags]    10kflows    -nightly
No Field, 100k Flows, Both Ways    ovs-dpdk    match-none       1       1            match-100k
    [Tags]    100kflows
Source, 100k Flows, Both Ways      ovs-dpdk    match-src        1       1            match-100k
    [Tags]    100kflows
2-Tuple, 100k Flows, Both Ways     ovs-dpdk    match-2-tuple    1       1            match-100k
    [Tags]    100kflows
4-Tuple, 100k Flows, Both Ways     ovs-dpdk    match-4-tuple    1       1            match-100k
    [Tags]    100kflows
5-Tuple, 100k Flows, Both Ways     ovs-dpdk    match-5-tuple    1       1            match-100k
    [Tags]    100kflows
No Field, 1M Flows, Both Ways      ovs-dpdk    match-none       1       1            match-1m
    [Tags]    1mflows
Source, 1M Flows, Both Ways        ovs-dpdk    match-src        1       1            match-1m
    [Tags]    1mflows
2-Tuple, 1M Flows, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1m
    [Tags]    1mflows
4-Tuple, 1M Flows, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1m
    [Tags]    1mflows
5-Tuple, 1M Flows, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1m
    [Tags]    1mflows
