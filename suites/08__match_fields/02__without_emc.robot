*** Settings ***
Documentation    The same as Match Fields, without the exact match cache of Open vSwitch (EMC).
...
...              Rules that match no field are compared with the same rules and the cache.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Packet Rate

Test Tags        nightly

Name             Match Fields, No EMC


*** Test Cases ***                         DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
No Field, 1k Flows, No EMC, Both Ways      ovs-dpdk    match-none       1       1            match-1k      emc_insert_inv_prob=0
Source, 1k Flows, No EMC, Both Ways        ovs-dpdk    match-src        1       1            match-1k      emc_insert_inv_prob=0
2-Tuple, 1k Flows, No EMC, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1k      emc_insert_inv_prob=0
4-Tuple, 1k Flows, No EMC, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1k      emc_insert_inv_prob=0
5-Tuple, 1k Flows, No EMC, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1k      emc_insert_inv_prob=0
No Field, 10k Flows, No EMC, Both Ways     ovs-dpdk    match-none       1       1            match-10k     emc_insert_inv_prob=0
Source, 10k Flows, No EMC, Both Ways       ovs-dpdk    match-src        1       1            match-10k     emc_insert_inv_prob=0
2-Tuple, 10k Flows, No EMC, Both Ways      ovs-dpdk    match-2-tuple    1       1            match-10k     emc_insert_inv_prob=0
4-Tuple, 10k Flows, No EMC, Both Ways      ovs-dpdk    match-4-tuple    1       1            match-10k     emc_insert_inv_prob=0
5-Tuple, 10k Flows, No EMC, Both Ways      ovs-dpdk    match-5-tuple    1       1            match-10k     emc_insert_inv_prob=0
No Field, 100k Flows, No EMC, Both Ways    ovs-dpdk    match-none       1       1            match-100k    emc_insert_inv_prob=0
Source, 100k Flows, No EMC, Both Ways      ovs-dpdk    match-src        1       1            match-100k    emc_insert_inv_prob=0
2-Tuple, 100k Flows, No EMC, Both Ways     ovs-dpdk    match-2-tuple    1       1            match-100k    emc_insert_inv_prob=0
4-Tuple, 100k Flows, No EMC, Both Ways     ovs-dpdk    match-4-tuple    1       1            match-100k    emc_insert_inv_prob=0
5-Tuple, 100k Flows, No EMC, Both Ways     ovs-dpdk    match-5-tuple    1       1            match-100k    emc_insert_inv_prob=0
No Field, 1M Flows, No EMC, Both Ways      ovs-dpdk    match-none       1       1            match-1m      emc_insert_inv_prob=0
Source, 1M Flows, No EMC, Both Ways        ovs-dpdk    match-src        1       1            match-1m      emc_insert_inv_prob=0
2-Tuple, 1M Flows, No EMC, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1m      emc_insert_inv_prob=0
4-Tuple, 1M Flows, No EMC, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1m      emc_insert_inv_prob=0
5-Tuple, 1M Flows, No EMC, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1m      emc_insert_inv_prob=0
