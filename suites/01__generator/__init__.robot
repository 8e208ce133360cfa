*** Settings ***
Documentation    Promises about the traffic generator, on which every other measurement depends.

Name             Traffic Generator
