# shellcheck shell=dash disable=SC2034,SC2154
# A learning bridge: one link to the client, and to the server a bond of two with LACP (2014).
LACP=plain STREAMS_ONLY=yes
use bridge
wires
devices
dut ip link add bridge type bridge
for device in $CLIENT $SERVER; do dut ip link set "$device" master bridge; done
dut ip link set bridge up
up bridge
negotiated

prove() {
    forwarded 0
    tracked 0
    bonded
}
