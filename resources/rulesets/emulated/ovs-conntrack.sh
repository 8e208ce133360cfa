# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath and the flows of resources/rulesets/ovs/conntrack.flows.
use nf_conntrack_netlink
openvswitch conntrack.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked $OPENED
}
