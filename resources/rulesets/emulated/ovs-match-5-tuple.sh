# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath, connection tracking, and rules that match addresses, ports and protocol (slide 12 of 2017): match-5-tuple.flows
# with the ports of this traffic.
STREAMS_ONLY=yes
use nf_conntrack_netlink
busybox sed 's/0x4d0/0x400/g; s/=1234/=5353/g' /guest/rulesets/ovs/match-5-tuple.flows >/guest/rulesets/ovs/here.flows
openvswitch here.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked $OPENED
    own=$(dut ovs-appctl dpctl/dump-flows | busybox grep -c "udp(src=1024/0xfff0,dst=5353")
    check yes "$([ "$own" -gt 0 ] && echo yes)" "flows of the datapath with these fields"
}
