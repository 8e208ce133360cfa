# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath as a bridge that learns, over what the ports are: plain, Linux bonds, trunks.
openvswitch normal.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked 0
    members
    learnt
}
