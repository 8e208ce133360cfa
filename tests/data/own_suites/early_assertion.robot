*** Settings ***
Documentation    One row cannot be measured, and a test fails before it measures anything.

Resource         ../../../resources/testbed.resource

Suite Setup      Open Testbed    local    quick    ${CURDIR}/forwarding.yaml


*** Test Cases ***
Cannot Be Measured
    Packet Rate Should Meet SLA    linux-router    iptables-snat    1    1    udp-64-10k

Fails Before
    Should Be True    1 > 2
    Packet Rate Should Meet SLA    linux-router    forward    1    1    udp-64-10k
