*** Settings ***
Documentation    It asks for another testbed than the suite before.

Resource         ../../../../resources/testbed.resource

Suite Setup      Open Testbed    emulated    quick    ${CURDIR}/../forwarding.yaml
Test Template    Packet Rate Should Meet SLA


*** Test Cases ***
Elsewhere    linux-router    forward    1    1    udp-64-10k
