# shellcheck shell=dash disable=SC2034,SC2154
# As ovs-lacp, and the client is on an access port of VLAN 100: its frames get the tag, which is taken off on the way back.
OWN_BONDS=yes LACP=tagged STREAMS_ONLY=yes
openvswitch normal.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked 0
    VLAN=100 learnt
    pushed=$(dut ovs-appctl dpctl/dump-flows | busybox grep -c "push_vlan(vid=100")
    popped=$(dut ovs-appctl dpctl/dump-flows | busybox grep -c pop_vlan)
    check yes "$([ "$pushed" -gt 0 ] && echo yes)" "flows that push the tag"
    check yes "$([ "$popped" -gt 0 ] && echo yes)" "flows that pop the tag"
    bonded
}
