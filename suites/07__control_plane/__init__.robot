*** Settings ***
Documentation    Promises about the control plane while the device forwards: how long it takes for something, and what the
...              traffic loses meanwhile.

Name             Control Plane
