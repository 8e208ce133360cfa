*** Settings ***
Documentation    What happens at a limit that is not changed: that of the Linux kernel's table, which is its host's.
...
...              Connections beyond it are refused, or others that are open are forgotten to make room (early drop).
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Early Drop Should Meet SLA

Test Tags        linux    router    table    conntrack    stateful    iptables    1cpu    1rxq    early-drop    nightly

Name             Early Drop


*** Test Cases ***               DATAPATH        RULESET              CPUS    RX QUEUES    PROFILE
Early Drop, Stateful iptables    linux-router    iptables-stateful    1       1            held       timeout_s=120
