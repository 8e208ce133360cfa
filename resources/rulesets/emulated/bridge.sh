# shellcheck shell=dash disable=SC2034,SC2154
# A learning bridge; where the ports are trunks of a VLAN, it filters by VLAN.
use bridge
wires
devices
dut ip link add bridge type bridge vlan_filtering $((VLAN != 0))
for device in $CLIENT $SERVER; do
    dut ip link set "$device" master bridge
    [ $VLAN = 0 ] || dut bridge vlan add dev "$device" vid $VLAN
done
dut ip link set bridge up
up bridge

prove() {
    forwarded 0
    tracked 0
    members
    check $((VLAN != 0)) "$(dut busybox cat /sys/class/net/bridge/bridge/vlan_filtering)" "filtering by VLAN"
    learnt=$(dut bridge fdb show br bridge | busybox grep -c "^02:00:00:00:00:0[12] dev .*master bridge")
    check 2 "$learnt" "addresses learnt by the bridge"
}
