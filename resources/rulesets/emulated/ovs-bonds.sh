# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath as a bridge that learns, over bonds that it makes itself.
OWN_BONDS=yes
use dummy
openvswitch normal.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked 0
    learnt
    active client
    active server
}
