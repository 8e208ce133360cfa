*** Settings ***
Documentation    Whether entries of the connection table count what passes them by in a flowtable.
...
...              A thousand connections are opened and asked, which puts them into the flowtable, and left idle until they
...              have left it. Then each has to answer again, and its entry to have counted every packet, both ways.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Accounting Should Meet SLA

Test Tags    linux
...          router
...          table
...          conntrack
...          stateful
...          nftables
...          flowtable
...          1cpu
...          1rxq
...          accounting
...          nightly

Name             Accounting


*** Test Cases ***                      DATAPATH        RULESET               CPUS    RX QUEUES    PROFILE
Accounting, Flowtable, nftables, TCP    linux-router    nftables-flowtable    1       1            held        timeout_s=60
Accounting, Flowtable, nftables, UDP    linux-router    nftables-flowtable    1       1            held-udp    timeout_s=60
