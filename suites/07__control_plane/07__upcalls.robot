*** Settings ***
Documentation    Every packet is the first of its flow: the rules are looked up for it, and a flow of the datapath is made.
...
...              The userspace datapath does so in the thread that forwards. A datapath in the kernel asks a handler; more
...              of them are faster where they have CPUs of their own.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    New Flow Rate Should Meet SLA

Test Tags        ovs-dpdk    control-plane    forward    1cpu    1rxq    upcalls    long

Name             Upcalls


*** Test Cases ***         DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
New Flows, 1 Handler       ovs-dpdk    flow-each    1       1            udp-exchange    handlers=1
New Flows, 2 Handlers      ovs-dpdk    flow-each    1       1            udp-exchange    handlers=2
New Flows, 4 Handlers      ovs-dpdk    flow-each    1       1            udp-exchange    handlers=4
