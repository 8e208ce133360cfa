*** Settings ***
Documentation    Tests in steps: of what they say, one thing is wrong, missing or left out.

Library          ConntrackSLA

Suite Setup      Use The Testbed    sla=${CURDIR}/in_steps.yaml


*** Test Cases ***
Is Met
    Use Topology    linux-router    forward
    Measure    packet rate    udp-64-10k
    Should Meet SLA

An Option That There Is Not
    Use Topology    linux-router    forward    mut=9000

A Value That Cannot Be
    Use Topology    linux-router    forward    mtu=100

A Promise That There Is Not
    Use Topology    linux-router    forward
    Measure    conection rate    short-lived

A Profile Of Another Kind
    Use Topology    linux-router    forward
    Measure    connection rate    udp-64-10k

No Topology Of Its Own
    Measure    packet rate    udp-64-10k

No Measurement Of Its Own
    Should Meet SLA

What The Testbed Lacks
    Use Topology    linux-bridge    forward    ports=bond
    Measure    packet rate    udp-64-10k

What Is For The Night
    [Tags]    nightly
    Use Topology    linux-router    forward
    Measure    packet rate    udp-64-10k

A Miss That Is Accepted
    Use Topology    linux-router    nftables-stateful
    Measure    packet rate    udp-64-10k
    Should Meet SLA
