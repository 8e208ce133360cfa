*** Settings ***
Documentation    Comes first in the alphabet and last in the folder.

Resource         ../../../resources/linux.resource

Suite Setup      Use The Testbed
Test Template    Connection Rate Of Linux Router Should Meet SLA

Name             Ant


*** Test Cases ***                         RULESET              CPUS    RX QUEUES    PROFILE
Stateful iptables, Short-Lived             iptables-stateful    1       1            short-lived
    [Tags]    short
