# shellcheck shell=dash disable=SC2034,SC2154
# Stateful iptables with 10 rules more that every packet is compared with first, and none of which it matches.
use nf_conntrack nf_conntrack_netlink nft_compat xt_conntrack
router
rules iptables/stateful.rules
unmatched 10

prove() {
    forwarded $PASSED
    tracked $OPENED
    check 10 "$(dut iptables -S FORWARD | busybox grep -c 203.0.113)" "rules that match nothing"
    [ "$1" != stream ] || accepted $((ROUNDS * PACKETS))
}
