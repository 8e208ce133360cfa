# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath, and a rule of its own for each flow, which names addresses, ports and protocol:
# so has each flow of the datapath. To compare with ovs-forward, whose two rules name the port only.
openvswitch forward.flows
STREAMS_ONLY=yes FLOWS=1
case $WORKLOADS in
stream-1k) FLOWS=1000 ;;
stream-10k) broken "ten thousand rules take too long" ;;
esac
UPCALLS=$FLOWS
busybox awk -v flows=$FLOWS 'BEGIN { for (flow = 0; flow < flows; flow++) {
    host = flow % 256
    print "priority=2,udp,in_port=1,nw_src=16.0.0." host ",nw_dst=48.0.0." host ",tp_dst=5353,tp_src=" \
        1024 + int(flow / 256) ",actions=output:2"
} }' >/tmp/tuples
dut ovs-ofctl add-flows bridge /tmp/tuples

prove() {
    forwarded 0
    switched $PASSED
    tracked 0
    own=$(dut ovs-appctl dpctl/dump-flows | busybox grep -c "ipv4(src=16.0.0.*udp(src=[0-9]*,dst=5353)")
    check $FLOWS "$own" "flows of the datapath with all five fields"
}
