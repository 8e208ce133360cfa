# shellcheck shell=dash disable=SC2034,SC2154
# A router without netfilter.
router

prove() {
    forwarded $PASSED
    tracked 0
    members
}
