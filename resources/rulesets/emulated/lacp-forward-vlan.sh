# shellcheck shell=dash disable=SC2034,SC2154
# A router without netfilter: one link to the client, and to the server a bond of two with LACP (2014) and a VLAN device on it.
LACP=tagged STREAMS_ONLY=yes
router

prove() {
    forwarded $PASSED
    tracked 0
    bonded
}
