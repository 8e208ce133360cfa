*** Settings ***
Documentation    Its SLA is met.

Resource         ../../../../resources/testbed.resource

Suite Setup      Open Testbed    local    quick    ${CURDIR}/../forwarding.yaml
Test Template    Packet Rate Should Meet SLA


*** Test Cases ***
Is Met           linux-router    forward    1    1    udp-64-10k
