# shellcheck shell=dash disable=SC2034,SC2154
# A router without netfilter: one link to the client, and to the server a bond of two with LACP (2014).
LACP=plain STREAMS_ONLY=yes
router

prove() {
    forwarded $PASSED
    tracked 0
    bonded
}
