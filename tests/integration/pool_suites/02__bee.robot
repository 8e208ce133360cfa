*** Settings ***
Documentation    A test that is skipped, one that is not, and one of which a trial can be made endless.

Resource         ../../../resources/testbed.resource

Suite Setup      Use The Testbed

Name             Bee


*** Test Cases ***
What This Testbed Lacks
    [Tags]    lacking
    Skip    2 NICs are needed, and there are none.

1 CPU, 1 Queue, Once More
    [Tags]    more
    Connection Rate Should Meet SLA    ovs-dpdk    conntrack    1    1    short-lived

1 CPU, 1 Queue, Long-Lived Connections
    [Tags]    endless
    Connection Rate Should Meet SLA    ovs-dpdk    conntrack    1    1    long-lived
