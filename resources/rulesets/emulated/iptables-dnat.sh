# shellcheck shell=dash disable=SC2034,SC2154
# A router with the rules of resources/rulesets/iptables/dnat.rules.
use nf_conntrack nf_conntrack_netlink nft_compat xt_conntrack nft_chain_nat xt_nat
router
rules iptables/dnat.rules

prove() {
    forwarded $PASSED
    tracked $OPENED
    translated dst $OPENED
    [ "$1" != stream ] || accepted $ESTABLISHED
}
