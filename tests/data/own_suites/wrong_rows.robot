*** Settings ***
Documentation    One mistake in each row.

Library          ConntrackSLA

Suite Setup      Use The Testbed
Test Template    Connection Rate Should Be At Least


*** Test Cases ***        MINIMUM    DATAPATH        RULESET      CPUS    RX QUEUES    PROFILE
Right                     50k        ovs-dpdk        conntrack    2       2            short-lived    pps=350k
A Misspelt DUT            50k        ovs-dpkd        conntrack    2       2            short-lived
A Misspelt Ruleset        50k        ovs-dpdk        contrack     2       2            short-lived
Another DUT's Ruleset     50k        linux-router    conntrack    2       2            short-lived
A Misspelt Profile        50k        ovs-dpdk        conntrack    2       2            short-lifed
A Profile Elsewhere       50k        ovs-dpdk        conntrack    2       2            ./nowhere.yaml
A Column Too Few          50k        ovs-dpdk        conntrack    2       short-lived
A Column Too Many         50k        ovs-dpdk        conntrack    2       2            short-lived    short-lived
Not A Number              50k        ovs-dpdk        conntrack    two     2            short-lived
Too Many CPUs             50k        ovs-dpdk        conntrack    200     2            short-lived
A Misspelt Option         50k        ovs-dpdk        conntrack    2       2            short-lived    mut=9000
Ports That Are None       50k        ovs-dpdk        conntrack    2       2            short-lived    ports=bnod
A Minimum That Is None    fast       ovs-dpdk        conntrack    2       2            short-lived
A Condition Without Sense    50k     ovs-dpdk        conntrack    2       2            short-lived    loss=200%
An Option That Does Nothing    50k    linux-bridge    forward      2       2            short-lived    timeout_s=5
Packets For Connections    50k       ovs-dpdk        conntrack    2       2            udp-64-10k
A Misspelt Promise
    [Template]    NONE
    Use Topology    ovs-dpdk    conntrack
    Measure    conection rate    short-lived
