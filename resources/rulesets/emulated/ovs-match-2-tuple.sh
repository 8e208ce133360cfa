# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath, connection tracking, and rules that match both addresses (slide 12 of 2017).
STREAMS_ONLY=yes
use nf_conntrack_netlink
openvswitch match-2-tuple.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked $OPENED
    own=$(dut ovs-appctl dpctl/dump-flows | busybox grep -c "ipv4(src=16.0.0.0/255.240.0.0,dst=48.0.0.0/255.240.0.0")
    check yes "$([ "$own" -gt 0 ] && echo yes)" "flows of the datapath with these fields"
}
