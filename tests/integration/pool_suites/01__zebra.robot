*** Settings ***
Documentation    Comes last in the alphabet and first in the folder.

Resource         ../../../resources/ovs_dpdk.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Of OVS-DPDK Should Meet SLA

Name             Zebra


*** Test Cases ***                         RULESET      PMD CPUS    RX QUEUES    PROFILE
1 CPU, 1 Queue, Short-Lived Connections    conntrack    1           1            short-lived
    [Tags]    short
1 CPU, 1 Queue, Long-Lived Connections     conntrack    1           1            long-lived
    [Tags]    endless
