# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath as a learning bridge, with a bond of its own: one link to the client, and to the
# server a bond of two with LACP and balance-tcp (2014).
OWN_BONDS=yes LACP=plain STREAMS_ONLY=yes
openvswitch normal.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked 0
    learnt
    bonded
}
