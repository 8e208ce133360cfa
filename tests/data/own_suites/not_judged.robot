*** Settings ***
Documentation    They measure what misses its SLA, and do not ask of all of it.

Library          ConntrackSLA

Suite Setup      Use The Testbed    sla=${CURDIR}/twice_as_much.yaml


*** Test Cases ***
Does Not Ask
    Use Topology    linux-router    forward
    Measure    packet rate    udp-64-10k

Asks Of The Second Only
    Use Topology    linux-router    forward
    Measure    packet rate    udp-64-10k
    Measure    packet rate    udp-64-10k
    Should Meet SLA
