*** Settings ***
Documentation    One row has no floor yet.

Library          ConntrackSLA

Suite Setup      Use The Testbed    sla=${CURDIR}/no_floor.yaml
Test Template    Packet Rate Should Meet SLA


*** Test Cases ***
Is Met              linux-router    forward              1    1    udp-64-10k
Has No Floor Yet    linux-router    nftables-stateful    1    1    udp-64-10k
    [Tags]    stateful
