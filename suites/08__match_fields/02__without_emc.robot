*** Settings ***
Documentation    The same as Match Fields, without the exact match cache of Open vSwitch (EMC).
...
...              Rules that match no field are compared with the same rules and the cache.
...
...              Promised of a candidate, compared with another build: of_build in variables/sla/local.yaml.
...              ``./run sla --argumentfile test_lists/nightly.args --candidate BUILD`` judges it.
...              Published rates: variables/sla/published-2017.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    match-fields    1cpu    1rxq    pps    both-ways    ratio    nightly

Name             Match Fields, No EMC


*** Test Cases ***                         DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
No Field, 1k Flows, No EMC, Both Ways      ovs-dpdk    match-none       1       1            match-1k      emc_insert_inv_prob=0
    [Tags]    1kflows
Source, 1k Flows, No EMC, Both Ways        ovs-dpdk    match-src        1       1            match-1k      emc_insert_inv_prob=0
    [Tags]    1kflows
2-Tuple, 1k Flows, No EMC, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1k      emc_insert_inv_prob=0
    [Tags]    1kflows
4-Tuple, 1k Flows, No EMC, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1k      emc_insert_inv_prob=0
    [Tags]    1kflows
5-Tuple, 1k Flows, No EMC, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1k      emc_insert_inv_prob=0
    [Tags]    1kflows
No Field, 10k Flows, No EMC, Both Ways     ovs-dpdk    match-none       1       1            match-10k     emc_insert_inv_prob=0
    [Tags]    10kflows
Source, 10k Flows, No EMC, Both Ways       ovs-dpdk    match-src        1       1            match-10k     emc_insert_inv_prob=0
    [Tags]    10kflows
2-Tuple, 10k Flows, No EMC, Both Ways      ovs-dpdk    match-2-tuple    1       1            match-10k     emc_insert_inv_prob=0
    [Tags]    10kflows
4-Tuple, 10k Flows, No EMC, Both Ways      ovs-dpdk    match-4-tuple    1       1            match-10k     emc_insert_inv_prob=0
    [Tags]    10kflows
5-Tuple, 10k Flows, No EMC, Both Ways      ovs-dpdk    match-5-tuple    1       1            match-10k     emc_insert_inv_prob=0
    [Tags]    10kflows
No Field, 100k Flows, No EMC, Both Ways    ovs-dpdk    match-none       1       1            match-100k    emc_insert_inv_prob=0
    [Tags]    100kflows
Source, 100k Flows, No EMC, Both Ways      ovs-dpdk    match-src        1       1            match-100k    emc_insert_inv_prob=0
    [Tags]    100kflows
2-Tuple, 100k Flows, No EMC, Both Ways     ovs-dpdk    match-2-tuple    1       1            match-100k    emc_insert_inv_prob=0
    [Tags]    100kflows
4-Tuple, 100k Flows, No EMC, Both Ways     ovs-dpdk    match-4-tuple    1       1            match-100k    emc_insert_inv_prob=0
    [Tags]    100kflows
5-Tuple, 100k Flows, No EMC, Both Ways     ovs-dpdk    match-5-tuple    1       1            match-100k    emc_insert_inv_prob=0
    [Tags]    100kflows
No Field, 1M Flows, No EMC, Both Ways      ovs-dpdk    match-none       1       1            match-1m      emc_insert_inv_prob=0
    [Tags]    1mflows
Source, 1M Flows, No EMC, Both Ways        ovs-dpdk    match-src        1       1            match-1m      emc_insert_inv_prob=0
    [Tags]    1mflows
2-Tuple, 1M Flows, No EMC, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1m      emc_insert_inv_prob=0
    [Tags]    1mflows
4-Tuple, 1M Flows, No EMC, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1m      emc_insert_inv_prob=0
    [Tags]    1mflows
5-Tuple, 1M Flows, No EMC, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1m      emc_insert_inv_prob=0
    [Tags]    1mflows
