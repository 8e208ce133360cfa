*** Settings ***
Documentation    Promises about mobile traffic: a million flows are open at once, and as many begin as end.

Name             Mobile
