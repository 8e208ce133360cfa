*** Settings ***
Documentation    What the keywords say, in a run of tests in steps in which one thing each is wrong, missing or left out.

Library          DateTime
Resource         runs.resource

Suite Setup      Run Suite In Steps
Test Template    Test Ended With


*** Test Cases ***                                       STATUS    MESSAGE
Is Met                                                   PASS      Met: packets: 340.0 k pps
An Option That There Is Not                              FAIL      mut is not an option of a topology.
A Value That Cannot Be                                   FAIL      mtu is "100": input should be greater than or equal to 576.
A Promise That There Is Not                              FAIL      connection rate
A Profile Of Another Kind                                FAIL      a promise such as packet rate can.
No Topology Of Its Own                                   FAIL      No topology: use Use Topology or Use Cable first
No Measurement Of Its Own                                FAIL      Nothing was measured in this test: use Measure first.
What The Testbed Lacks                                   SKIP      There is no module `bonding`.
What Is For The Night                                    SKIP      Campaign quick skips tests tagged nightly
A Miss That Is Accepted                                  SKIP      accepted until ${UNTIL}

Each Test Is Counted By What Became Of It
    [Template]    NONE
    Exit Status Should Be    4
    File Should Say    configuration-errors.txt    mut is not an option
    File Should Say    configuration-errors.txt    mtu is "100"
    File Should Say    configuration-errors.txt    a promise such as packet rate can.
    File Should Say    configuration-errors.txt    is not a promise
    Console Should Say    1 met, 1 missed, accepted
    Console Should Say    1 nightly only
    File Should Say    without-record.json    nightly only
    File Should Say    without-record.json    bonding
    File Should Say    junit.xml    slower locks, fixed in 3.3.1
    File Should Say    sla.md    slower locks, fixed in 3.3.1
    File Should Say    sla.html    R. Manager
    File Should Say    summary.json    "ticket": "OVS-1234"


*** Keywords ***
Run Suite In Steps
    [Documentation]    A miss can be accepted for a year at most: the copy of the SLA file that is used has a day to come.
    VAR    ${own} =    ${TESTS}/data/own_suites
    VAR    ${copy} =    ${OUTPUT DIR}/in-steps
    ${until} =    Get Current Date    UTC    increment=30 days    result_format=%Y-%m-%d
    ${promised} =    Get File    ${own}/in_steps.yaml
    Create File    ${copy}/in_steps.yaml    ${{$promised.replace('2025-12-31', $until)}}
    Copy File    ${own}/in_steps.robot    ${copy}
    VAR    ${UNTIL} =    ${until}    scope=SUITE
    Run Suite    ${copy}/in_steps.robot

Test Ended With
    [Documentation]    How the test of this name ended in that run.
    [Arguments]    ${status}    ${message}
    ${result} =    Evaluate    robot.api.ExecutionResult($RUN_FOLDER + '/output.xml')    modules=robot.api
    ${ended} =    Evaluate    {each.name: each for each in $result.suite.all_tests}[$TEST_NAME]
    Should Be Equal    ${ended.status}    ${status}    ${ended.message}    values=False
    Should Contain    ${ended.message}    ${message}
