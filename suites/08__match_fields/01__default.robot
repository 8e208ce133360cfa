*** Settings ***
Documentation    What the fields cost that the rules of Open vSwitch match, with connection tracking.
...
...              Each is compared with rules that match no field, of as many flows (slides 12 to 14 of 2017); those, with
...              the rules of conntrack.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Packet Rate

Test Tags        nightly

Name             Match Fields


*** Test Cases ***                 DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
No Field, 1k Flows, Both Ways      ovs-dpdk    match-none       1       1            match-1k
Source, 1k Flows, Both Ways        ovs-dpdk    match-src        1       1            match-1k
2-Tuple, 1k Flows, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1k
4-Tuple, 1k Flows, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1k
5-Tuple, 1k Flows, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1k
No Field, 10k Flows, Both Ways     ovs-dpdk    match-none       1       1            match-10k
Source, 10k Flows, Both Ways       ovs-dpdk    match-src        1       1            match-10k
2-Tuple, 10k Flows, Both Ways      ovs-dpdk    match-2-tuple    1       1            match-10k
4-Tuple, 10k Flows, Both Ways      ovs-dpdk    match-4-tuple    1       1            match-10k
5-Tuple, 10k Flows, Both Ways      ovs-dpdk    match-5-tuple    1       1            match-10k
    [Tags]    -nightly
No Field, 100k Flows, Both Ways    ovs-dpdk    match-none       1       1            match-100k
Source, 100k Flows, Both Ways      ovs-dpdk    match-src        1       1            match-100k
2-Tuple, 100k Flows, Both Ways     ovs-dpdk    match-2-tuple    1       1            match-100k
4-Tuple, 100k Flows, Both Ways     ovs-dpdk    match-4-tuple    1       1            match-100k
5-Tuple, 100k Flows, Both Ways     ovs-dpdk    match-5-tuple    1       1            match-100k
No Field, 1M Flows, Both Ways      ovs-dpdk    match-none       1       1            match-1m
Source, 1M Flows, Both Ways        ovs-dpdk    match-src        1       1            match-1m
2-Tuple, 1M Flows, Both Ways       ovs-dpdk    match-2-tuple    1       1            match-1m
4-Tuple, 1M Flows, Both Ways       ovs-dpdk    match-4-tuple    1       1            match-1m
5-Tuple, 1M Flows, Both Ways       ovs-dpdk    match-5-tuple    1       1            match-1m
