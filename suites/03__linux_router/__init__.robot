*** Settings ***
Documentation    Promises about the Linux kernel as a router, a firewall and a NAT gateway.

Name             Linux Router
