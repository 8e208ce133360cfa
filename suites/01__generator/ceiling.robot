*** Settings ***
Documentation    The capacity of the traffic generator itself, over a cable in place of the device under test.
...
...              Nothing can be measured above this ceiling. It is not a promise about a product: if it is missed,
...              this machine is too slow or too busy for the tests.

Resource         ../../resources/promises.resource

Suite Setup      Use The Testbed
Test Template    Traffic Generator Should Be Fast Enough

Test Tags        generator    ceiling    pps

Name             Ceiling


*** Test Cases ***                          PROFILE
Generator Ceiling, Short-Lived Connections  short-lived
Generator Ceiling, Long-Lived Connections   long-lived
