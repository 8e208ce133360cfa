# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath, connection tracking, and rules that match no field (slide 12 of 2017).
STREAMS_ONLY=yes
use nf_conntrack_netlink
openvswitch match-none.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked $OPENED
}
