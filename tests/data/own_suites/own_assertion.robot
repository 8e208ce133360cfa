*** Settings ***
Documentation    A test asks for more than the SLA, which is met.

Resource         ../../../resources/testbed.resource

Suite Setup      Open Testbed    local    quick    ${CURDIR}/forwarding.yaml


*** Test Cases ***
Is Met
    Packet Rate Should Meet SLA    linux-router    forward    1    1    udp-64-10k

Asks For More
    Use Topology    linux-router    forward
    ${record} =    Measure    packet rate    udp-64-10k
    Should Meet SLA
    Should Be True    ${record.values}[pps] >= 900_000    Less than our own floor
