*** Settings ***
Documentation    A team's own suites: promises in the row, profiles, rulesets and SLA files of their own; and what
...              dashboards read of their run: results.csv and summary.json have the promise that decided.

Resource         runs.resource

Suite Setup      Run A Copy In Another Folder


*** Test Cases ***
A Suite In Another Folder Has Its Own Promises, Profile And Rules
    Exit Status Should Be    1
    Console Should Say    (4 met, 1 missed, 0 not measured)
    File Should Say    sla.md    Forwards More Than It Can: Packets: 340.0 k pps instead of at least 500.0 k pps
    File Should Say    sla.html    the row of the suite
    File Should Say    output.xml    Promised: packets at least 300.0 k pps, lost at most 0.100 %
    File Should Say    output.xml    at least 60.0 % (of linux-router/forward/1cpu-1rxq)

A Rate Is Told By Its Floor
    Decided By    Forwards Our Mix    pps    floor=300000    measured=340000    margin_pct=13.333333

A Miss Is Told By The Promise That Is Missed
    Decided By    Forwards More Than It Can    pps    floor=500000    measured=340000    margin_pct=-32

A Ratio Is Told By The Ratio, And Its Rates Have Columns Of Their Own
    Decided By    Keeps Most Of A Plain Router    ratio    floor=0.6    measured=0.75    margin_pct=25
    ${row} =    Row Of    Keeps Most Of A Plain Router
    Should Be Equal    ${row}[ratio_to]    linux-router/forward/1cpu-1rxq
    Should Be Equal As Numbers    ${row}[ratio_low]    0.75
    Should Be Equal As Numbers    ${row}[pps]    255000

A Dry Run Finds What Is Wrong In A Row, And Its Line
    Dry Run    wrong_rows.robot
    Should Contain    ${RUN.stdout}    17 tests, 1 passed, 16 failed
    FOR    ${line}    IN RANGE    12    28
        Should Contain    ${RUN.stdout}    wrong_rows.robot, line ${line}:
    END

A Dry Run Shows The Floor Of Every Row
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


*** Keywords ***
Run A Copy In Another Folder
    [Documentation]    Of the suites of another team, which their folder has all files of.
    Copy Directory    ${TESTS}/data/own_suites/elsewhere    ${OUTPUT DIR}/elsewhere
    Run Suite    ${OUTPUT DIR}/elsewhere/firewall.robot

Decided By
    [Documentation]    What both files say of the promise that decided a test.
    [Arguments]    ${test}    ${metric}    ${floor}    ${measured}    ${margin_pct}
    ${row} =    Row Of    ${test}
    ${text} =    Get File    ${RUN FOLDER}/summary.json
    ${told} =    Evaluate    {each['test']: each for each in json.loads($text)['tests']}[$test]    modules=json
    FOR    ${said}    IN    ${row}    ${told}
        Should Be Equal    ${said}[metric]    ${metric}
        Should Be Equal As Numbers    ${said}[floor]    ${floor}
        Should Be Equal As Numbers    ${said}[measured]    ${measured}
        Should Be Equal As Numbers    ${said}[margin_pct]    ${margin_pct}
    END

Row Of
    [Documentation]    The row of a test in the table.
    [Arguments]    ${test}
    ${text} =    Get File    ${RUN FOLDER}/results.csv
    ${row} =    Evaluate    {row['test']: row for row in csv.DictReader($text.splitlines())}[$test]    modules=csv
    RETURN    ${row}
