*** Settings ***
Documentation    What our firewall has to keep: the suite of docs/own-suites.md, in a folder of its own.

Library          ConntrackSLA

Suite Setup      Use The Testbed    sla=${CURDIR}/our-sla.yaml


*** Variables ***
${MIX}    our-mix.yaml


*** Test Cases ***
Forwards Our Mix
    Packet Rate Should Be At Least    300k    linux-router    forward    1    1    ${MIX}    loss=0.1%

Forwards More Than It Can
    Packet Rate Should Be At Least    500k    linux-router    forward    1    1    ./our-mix.yaml

Forwards Our Mix Through Our Rules
    Packet Rate Should Be At Least    300k    linux-router    rules/office.nft    1    1    our-mix.yaml

Keeps Most Of A Plain Router
    Packet Rate Should Keep    60%    linux-router/forward/1cpu-1rxq    linux-router    nftables-stateful    1    1
    ...    udp-64-10k

In Three Steps
    Use Topology    linux-router    rules/office.nft
    Measure    packet rate    our-mix.yaml
    Should Meet SLA
