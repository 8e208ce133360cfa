*** Settings ***
Documentation    Promises about Open vSwitch with the userspace datapath and DPDK.

Name             OVS-DPDK
