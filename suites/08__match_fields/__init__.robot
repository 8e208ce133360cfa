*** Settings ***
Documentation    Promises about the fields that the rules of Open vSwitch match: what is left of the packet rate with
...              connection tracking.

Name             Match Fields
