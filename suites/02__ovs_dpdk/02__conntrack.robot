*** Settings ***
Documentation    Open vSwitch with DPDK tracks every connection.
...
...              Only clients may open connections; servers may only answer them. The topologies
...              with more than one CPU, and the one with 1 CPU and 1 queue, are those that were published for OVS
...              2.17.2 and 3.0.0. Queues are receive queues per port. More queues or CPUs are compared with one of
...              each.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Topology Should Hold Its Connection Rate

Test Tags        pps

Name             Conntrack


*** Test Cases ***                           DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
1 CPU, 1 Queue, Short-Lived Connections      ovs-dpdk    conntrack    1       1            short-lived
1 CPU, 2 Queues, Short-Lived Connections     ovs-dpdk    conntrack    1       2            short-lived
1 CPU, 4 Queues, Short-Lived Connections     ovs-dpdk    conntrack    1       4            short-lived
1 CPU, 8 Queues, Short-Lived Connections     ovs-dpdk    conntrack    1       8            short-lived
2 CPUs, 1 Queue, Short-Lived Connections     ovs-dpdk    conntrack    2       1            short-lived
2 CPUs, 2 Queues, Short-Lived Connections    ovs-dpdk    conntrack    2       2            short-lived
4 CPUs, 2 Queues, Short-Lived Connections    ovs-dpdk    conntrack    4       2            short-lived
4 CPUs, 4 Queues, Short-Lived Connections    ovs-dpdk    conntrack    4       4            short-lived
8 CPUs, 4 Queues, Short-Lived Connections    ovs-dpdk    conntrack    8       4            short-lived
8 CPUs, 8 Queues, Short-Lived Connections    ovs-dpdk    conntrack    8       8            short-lived
1 CPU, 1 Queue, Long-Lived Connections       ovs-dpdk    conntrack    1       1            long-lived
1 CPU, 2 Queues, Long-Lived Connections      ovs-dpdk    conntrack    1       2            long-lived
1 CPU, 4 Queues, Long-Lived Connections      ovs-dpdk    conntrack    1       4            long-lived
1 CPU, 8 Queues, Long-Lived Connections      ovs-dpdk    conntrack    1       8            long-lived
2 CPUs, 1 Queue, Long-Lived Connections      ovs-dpdk    conntrack    2       1            long-lived
2 CPUs, 2 Queues, Long-Lived Connections     ovs-dpdk    conntrack    2       2            long-lived
4 CPUs, 2 Queues, Long-Lived Connections     ovs-dpdk    conntrack    4       2            long-lived
4 CPUs, 4 Queues, Long-Lived Connections     ovs-dpdk    conntrack    4       4            long-lived
8 CPUs, 4 Queues, Long-Lived Connections     ovs-dpdk    conntrack    8       4            long-lived
8 CPUs, 8 Queues, Long-Lived Connections     ovs-dpdk    conntrack    8       8            long-lived
