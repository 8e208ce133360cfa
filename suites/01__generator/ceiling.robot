*** Settings ***
Documentation    What the traffic generator can do by itself, over a cable in the place of the device under test.
...
...              Nothing can be measured beyond this ceiling. It is no promise about a product: when it is missed,
...              this machine is too slow, or too busy, to test on.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Traffic Generator Should Be Fast Enough

Test Tags        generator    ceiling    pps

Name             Ceiling


*** Test Cases ***                          PROFILE
Generator Ceiling, Short-Lived Connections  short-lived
Generator Ceiling, Long-Lived Connections   long-lived
