*** Settings ***
Documentation    A team's own suites: promises in the row, profiles, rulesets and SLA files of their own.

Resource         runs.resource


*** Test Cases ***
A Suite In Another Folder Has Its Own Promises, Profile And Rules
    Copy Directory    ${TESTS}/data/own_suites/elsewhere    ${OUTPUT DIR}/elsewhere
    Run Suite    ${OUTPUT DIR}/elsewhere/firewall.robot
    Exit Status Should Be    1
    Console Should Say    (4 met, 1 missed, 0 not measured)
    File Should Say    sla.md    Forwards More Than It Can: Packets: 340.0 k pps instead of at least 500.0 k pps
    File Should Say    sla.html    the row of the suite
    File Should Say    output.xml    Promised: packets at least 300.0 k pps, lost at most 0.100 %
    File Should Say    output.xml    at least 60.0 % (of linux-router/forward/1cpu-1rxq)

A Dry Run Finds What Is Wrong In A Row, And Its Line
    Dry Run    wrong_rows.robot
    Should Contain    ${RUN.stdout}    15 tests, 1 passed, 14 failed
    FOR    ${line}    IN RANGE    12    26
        Should Contain    ${RUN.stdout}    wrong_rows.robot, line ${line}:
    END

A Dry Run Shows The Minimum Of Every Row
    Dry Run    elsewhere/firewall.robot
    Exit Status Should Be    0
    File Should Say    output.xml    Promised: packets at least 500.0 k pps

A Row Without A Floor Is Left Out
    Run Suite    no_floor.robot
    Exit Status Should Be    0
    Console Should Say    No floor yet: too few machines have measured

A Row Without A Floor Is Measured Where Its Tag Or Its Name Is Asked For
    Run Suite    no_floor.robot    --test    Is Met    --test    Has No*
    Exit Status Should Be    0
    Console Should Say    packets served 300.0 k pps. ./run calibrate promises it
    File Should Say    sla.html    ./run calibrate promises it
    Run Suite    no_floor.robot    --include    stateful
    Console Should Say    packets served 300.0 k pps. ./run calibrate promises it
