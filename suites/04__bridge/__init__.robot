*** Settings ***
Documentation    Promises about bridges: of the Linux kernel, and of Open vSwitch for comparison.

Name             Bridges
