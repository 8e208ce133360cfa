# shellcheck shell=dash disable=SC2034,SC2154
# As ovs-user-conntrack, where each flow is in the exact match cache from its first packet on (else one packet in a
# hundred puts its flow there).
openvswitch conntrack.flows netdev
dut ovs-vsctl set Open_vSwitch . other_config:emc-insert-inv-prob=1

prove() {
    forwarded 0
    tracked 0
    switched $PASSED
    tracked_by_program $OPENED
    found_in_cache yes
}
