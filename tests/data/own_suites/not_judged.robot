*** Settings ***
Documentation    It measures what misses its SLA, and does not ask.

Library          ConntrackSLA

Suite Setup      Use The Testbed    sla=${CURDIR}/twice_as_much.yaml


*** Test Cases ***
Does Not Ask
    Use Topology    linux-router    forward
    Measure    packet rate    udp-64-10k
