# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with the datapath of the program itself and the flows of resources/rulesets/ovs/nat.flows.
openvswitch nat.flows netdev

prove() {
    forwarded 0
    tracked 0
    switched $PASSED
    tracked_by_program $OPENED dst=198.19
}
