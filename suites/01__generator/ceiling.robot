*** Settings ***
Documentation    What the traffic generator itself holds, over a cable in place of the device under test.
...
...              Nothing can be measured above this ceiling. It is not a promise about a product: if it is missed,
...              this machine is too slow or too busy for the tests.
...
...              Floors: variables/sla/local.yaml. Published rates: variables/sla/published-2022.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Generator Ceiling Should Meet SLA

Test Tags        generator    ceiling    cps    pps

Name             Ceiling


*** Test Cases ***                          PROFILE
Generator Ceiling, Short-Lived Connections  short-lived
    [Tags]    short-lived
Generator Ceiling, Long-Lived Connections   long-lived
    [Tags]    long-lived
