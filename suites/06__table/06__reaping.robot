*** Settings ***
Documentation    What a load loses while a million entries of other connections expire, or three million.
...
...              It is half of what a closed loop shows, or less where the table has no room for its own entries, and held
...              alone. Timeouts of open connections are 30 s, of the three million 90 s. Open vSwitch removes entries in a
...              thread of its own: its main thread has to answer meanwhile.
...
...              Floors: variables/sla/local.yaml.

Resource         ../../resources/testbed.resource

Suite Setup      Use The Testbed
Test Template    Load During Expiry Should Meet SLA

Test Tags        ovs    ovs-dpdk    table    conntrack    1cpu    1rxq    reaping    nightly

Name             Reaping


*** Test Cases ***                         DATAPATH    RULESET      CPUS    RX QUEUES    PROFILE
Reaping, Open vSwitch                      ovs-dpdk    conntrack    1       1            short-lived
Reaping Of 3 Million, UDP, Open vSwitch    ovs-dpdk    conntrack    1       1            udp-exchange    timeout_s=90
    ...    max_connections=8000000
