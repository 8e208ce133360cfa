*** Settings ***
Documentation    It opens no testbed, and that of the suites before it is not its own.

Resource         ../../../../resources/testbed.resource

Test Template    Packet Rate Should Meet SLA


*** Test Cases ***
By No SLA    linux-router    forward    1    1    udp-64-10k
