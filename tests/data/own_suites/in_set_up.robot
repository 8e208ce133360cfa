*** Settings ***
Documentation    A row outside of any test.

Library          ConntrackSLA

Suite Setup      Run Keywords    Use The Testbed    AND    Packet Rate Should Be At Least    300k    linux-router    forward    1    1
...              udp-64-10k


*** Test Cases ***
Is Not Measured
    No Operation
