*** Settings ***
Documentation    One row that is met, with its own floor.

Library          ConntrackSLA

Suite Setup      Use The Testbed
Test Template    Packet Rate Should Be At Least


*** Test Cases ***    MINIMUM    DATAPATH        RULESET    CPUS    RX QUEUES    PROFILE
Forwards              300k       linux-router    forward    1       1            udp-64-10k
