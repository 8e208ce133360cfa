*** Settings ***
Documentation    Comes last in the alphabet and first in the folder.

Resource         ../../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Name             Zebra


*** Test Cases ***                         DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
1 CPU, 1 Queue, Short-Lived Connections    ovs-dpdk    conntrack    1       1            short-lived
    [Tags]    short
1 CPU, 1 Queue, Long-Lived Connections     ovs-dpdk    conntrack    1       1            long-lived
    [Tags]    endless
