*** Settings ***
Documentation    One row cannot be measured, and the SLA has no floor for the other one.

Resource         ../../../resources/testbed.resource

Suite Setup      Open Testbed    local    quick    ${CURDIR}/forwarding.yaml
Test Template    Packet Rate Should Meet SLA


*** Test Cases ***
Cannot Be Measured    linux-router    iptables-snat    1    1    udp-64-10k
Has No Floor          linux-router    forward          1    1    udp-64-1flow
