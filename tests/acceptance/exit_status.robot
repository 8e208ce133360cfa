*** Settings ***
Documentation    What a run ends with, which is what a gate gives a colour to.

Resource         runs.resource


*** Test Cases ***
A Test That Could Not Be Measured
    Run Suite    not_measured.robot
    Exit Status Should Be    3
    Console Should Say    Not everything could be measured (1 met, 0 missed, 1 not measured)

A Mistake In A File Is Not Hidden By A Test That Could Not Be Measured
    Run Suite    mistake.robot
    Exit Status Should Be    4
    Console Should Say    The configuration is wrong

A Test That Fails Before It Measures Is Not Hidden Either
    Run Suite    early_assertion.robot
    Exit Status Should Be    5
    Console Should Say    A test failed without a verdict (0 met, 0 missed, 1 not measured): '1 > 2' should be true.

A Test That Measures A Miss And Does Not Ask Is Red In Robot's Files Too
    Run Suite    not_judged.robot
    Exit Status Should Be    1
    Console Should Say    (0 met, 2 missed, 0 not measured)
    Console Should Say    2 tests, 0 passed, 2 failed
    Console Should Say    Should Meet SLA

A Row Outside Of Any Test
    Run Suite    in_set_up.robot
    Exit Status Should Be    4
    File Should Say    configuration-errors.txt    Expected it in a test

An Assertion Of One's Own Counts As Much As The SLA
    Run Suite    own_assertion.robot
    Exit Status Should Be    1
    Console Should Say    A test failed although its SLA is met (1 met, 0 missed, 0 not measured, 1 met but failed)
    File Should Say    sla.md    Failed although its SLA is met: Asks For More: Less than our own floor.
    File Should Say    sla.md    Asks For More: Another step of the test failed: Less than our own floor
    File Should Say    sla.html    Less than our own floor
    File Should Say    junit.xml    tests="2" failures="1" errors="0"
    File Should Say    summary.json    "verdict": "met, failed"
    File Should Say    results.csv    "met, failed"

The Same Command Again Keeps What It Has A Record Of
    Run Suite    own_assertion.robot
    Run Suite    own_assertion.robot
    Exit Status Should Be    1
    Console Should Say    2 of 2 tests have a record in ${RUN FOLDER}, which counts where nothing has changed.
    Console Should Say    (1 met, 0 missed, 0 not measured, 1 met but failed)
    File Should Say    output.xml    Less than our own floor
    File Should Say    output.xml    status and was ignored. Message:
    File Should Say    output.xml    UTC counts.

What A Stopped Run Did Not Begin Is Told From What Failed
    Run Suite    elsewhere/firewall.robot    --exitonfailure
    Exit Status Should Be    1
    File Should Say    summary.json    "not begun": 3
    File Should Say    sla.md    3 tests not begun: the run was stopped before
