*** Settings ***
Documentation    Promises about what measures: without them nothing else can be measured.

Name             Traffic Generator
