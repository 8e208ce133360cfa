# shellcheck shell=dash disable=SC2034,SC2154
# Open vSwitch with its kernel datapath and the flows of resources/rulesets/ovs/forward.flows.
openvswitch forward.flows

prove() {
    forwarded 0
    switched $PASSED
    tracked 0
}
