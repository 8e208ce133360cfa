*** Settings ***
Documentation    Every packet is the first of its flow: the rules are looked up for it, and a flow of the datapath is made.
...
...              The userspace datapath does so in the thread that forwards. A datapath in the kernel asks a handler; more
...              of them are faster where they have CPUs of their own. With connection tracking a connection takes two flows
...              each way, before it is looked up and after that.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    New Flow Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    control-plane    1cpu    1rxq    upcalls    long

Name             Upcalls


*** Test Cases ***                 DATAPATH    RULESET          CPUS    RX QUEUES    PROFILE
New Flows, 1 Handler               ovs-dpdk    flow-each        1       1            udp-exchange    handlers=1
New Flows, 2 Handlers              ovs-dpdk    flow-each        1       1            udp-exchange    handlers=2
New Flows, 4 Handlers              ovs-dpdk    flow-each        1       1            udp-exchange    handlers=4
New Flows, Conntrack, 1 Handler    ovs-dpdk    flow-each-ct     1       1            udp-exchange    handlers=1
    [Tags]    conntrack    nightly
New Flows, NAT, 1 Handler          ovs-dpdk    flow-each-nat    1       1            udp-exchange    handlers=1
    [Tags]    conntrack    nat    snat    nightly
