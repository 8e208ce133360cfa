# shellcheck shell=dash disable=SC2034,SC2154
# A router with the rules of resources/rulesets/iptables/stateful.rules.
use nf_conntrack nf_conntrack_netlink nft_compat xt_conntrack
router
rules iptables/stateful.rules

prove() {
    forwarded $PASSED
    tracked $OPENED
    [ "$1" != stream ] || accepted $ESTABLISHED
}
