*** Settings ***
Documentation    Comes first in the alphabet and last in the folder.

Resource         ../../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Meet SLA

Name             Ant


*** Test Cases ***                         DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, Short-Lived             linux-router    iptables-stateful    1       1            short-lived
    [Tags]    short
