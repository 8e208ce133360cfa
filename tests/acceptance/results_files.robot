*** Settings ***
Documentation    What dashboards read of a run: results.csv and summary.json have the promise that decided.

Resource         runs.resource

Suite Setup      Run Suite    elsewhere/firewall.robot


*** Test Cases ***
A Rate Is Told By Its Floor
    Decided By    Forwards Our Mix    metric=pps    floor=300000.0    measured=340000.0

A Miss Is Told By The Promise That Is Missed
    Decided By    Forwards More Than It Can    metric=pps    floor=500000.0    measured=340000.0

A Ratio Is Told By The Ratio, And Its Rates Have Columns Of Their Own
    Decided By    Keeps Most Of A Plain Router    metric=ratio    floor=0.6    measured=0.75    margin_pct=25.0
    ...    ratio_to=linux-router/forward/1cpu-1rxq    pps=255000.0


*** Keywords ***
Decided By
    [Documentation]    What both files say of a test: in columns of the table, and those that the summary has too.
    [Arguments]    ${test}    &{expected}
    ${text} =    Get File    ${RUN FOLDER}/results.csv
    ${row} =    Evaluate    {row['test']: row for row in csv.DictReader($text.splitlines())}[$test]    modules=csv
    ${text} =    Get File    ${RUN FOLDER}/summary.json
    ${told} =    Evaluate    {each['test']: each for each in json.loads($text)['tests']}[$test]    modules=json
    FOR    ${name}    ${value}    IN    &{expected}
        Should Match    ${row}[${name}]    ${value}*
        IF    $name in $told    Should Match    ${told}[${name}]    ${value}*
    END
