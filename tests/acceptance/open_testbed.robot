*** Settings ***
Documentation    Suites of one run that ask for different things.

Resource         runs.resource


*** Test Cases ***
Each Suite Is Judged By Its Own SLA
    Run Suite    two_slas
    Exit Status Should Be    1
    Console Should Say    (1 met, 1 missed, 0 not measured)
    File Should Say    sla.md    By A Strict SLA: Packets: 340.0 k pps
    File Should Say    without-record.json    No testbed: use Open Testbed in the set-up of this suite

The Order Of The Suites Decides Nothing
    Run Suite    two_slas    --randomize    suites:3
    Exit Status Should Be    1
    Console Should Say    (1 met, 1 missed, 0 not measured)

Another Testbed Ends The Run With A Sentence
    Run Suite    two_testbeds
    Exit Status Should Be    4
    Console Should Say    this run has begun on variables/testbeds/local.yaml, and a suite asks for
    File Should Say    without-record.json    this run has begun on variables/testbeds/local.yaml
