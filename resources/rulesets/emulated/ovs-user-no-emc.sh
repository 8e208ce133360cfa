# shellcheck shell=dash disable=SC2034,SC2154
# As ovs-user-conntrack, without the exact match cache: each packet is looked up among the flows of the datapath.
openvswitch conntrack.flows netdev
dut ovs-vsctl set Open_vSwitch . other_config:emc-insert-inv-prob=0

prove() {
    forwarded 0
    tracked 0
    switched $PASSED
    tracked_by_program $OPENED
    found_in_cache no
}
