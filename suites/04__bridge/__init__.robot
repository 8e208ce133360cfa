*** Settings ***
Documentation    Promises about bridges: of the Linux kernel, and of Open vSwitch beside it.

Name             Bridges
