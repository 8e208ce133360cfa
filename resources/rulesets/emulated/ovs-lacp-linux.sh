# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath as a learning bridge, over a bond of the kernel: one link to the client, and to the
# server a bond of two with LACP (2014).
LACP=plain STREAMS_ONLY=yes
openvswitch normal.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked 0
    learnt
    bonded
}
