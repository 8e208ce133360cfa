*** Settings ***
Documentation    Does connection tracking still meet its performance SLA, on every topology that is promised?

Name             Conntrack Performance SLA
