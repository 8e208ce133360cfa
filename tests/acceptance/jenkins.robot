*** Settings ***
Documentation    A build of the Jenkinsfile: its own shell lines with what Jenkins gives them, on a simulated testbed.

Library          OperatingSystem
Library          ../JenkinsBuild.py

Test Setup       Set Test Variable    ${WORKSPACE}    ${OUTPUT DIR}/builds/${TEST NAME}


*** Variables ***
${SUITES}    ${CURDIR}/../data/own_suites


*** Test Cases ***
The First Build Of A Job Finds Its List, Testbed And SLA, And Begins The History
    Begin A Build    ${WORKSPACE}    ${SUITES}/forwards.robot    WITHOUT_CANDIDATE
    ${status} =    Do Step    Measure
    Should Be Equal As Integers    ${status}    0
    Result Should Be    SUCCESS
    File Should Exist    ${WORKSPACE}/results/gate/sla.html
    File Should Exist    ${WORKSPACE}/results/gate/junit.xml
    ${page} =    Get File    ${WORKSPACE}/results/gate/junit.xml
    Should Contain    ${page}    name="Campaign" value="gate"
    ${status} =    Do Step    History
    Should Be Equal As Integers    ${status}    0
    Directory Should Not Be Empty    ${WORKSPACE}/results/history/gate/13/records
    File Should Exist    ${WORKSPACE}/results/builds/sla.html

A Gate Without A Candidate Is Not Green
    Begin A Build    ${WORKSPACE}    ${SUITES}/forwards.robot
    Do Step    Measure
    Result Should Be    UNSTABLE

A Miss Is Red Whatever The Box Says
    Begin A Build    ${WORKSPACE}    ${SUITES}/own_assertion.robot    WITHOUT_CANDIDATE
    Do Step    Measure
    Result Should Be    FAILURE


*** Keywords ***
Result Should Be
    [Documentation]    What Jenkins shows of the build.
    [Arguments]    ${expected}
    ${result} =    Result
    Should Be Equal    ${result}    ${expected}
