*** Settings ***
Documentation    The highest rate of new flows while a million flows stay open (slides 3 to 8 of 2017).
...
...              At most 0.02 % of them may be lost, as of all connections; 2017 asks for 0 %, as campaign rfc2544.
...              75 % of the flows are short, frames have 600 bytes in the mean, both ways. A campaign may scale the flows
...              down (``scale``); the record says so.
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2017.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Test Tags        ovs    ovs-dpdk    conntrack    1cpu    1rxq    cps    mobile    nightly

Name             Mobile Traffic


*** Test Cases ***              DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Mobile Traffic, Open vSwitch    ovs-dpdk    conntrack    1       1            mobile
