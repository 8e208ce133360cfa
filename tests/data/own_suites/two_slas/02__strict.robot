*** Settings ***
Documentation    Its SLA is missed.

Resource         ../../../../resources/testbed.resource

Suite Setup      Open Testbed    local    quick    ${CURDIR}/../twice_as_much.yaml
Test Template    Packet Rate Should Meet SLA


*** Test Cases ***
By A Strict SLA    linux-router    forward    1    1    udp-64-10k
