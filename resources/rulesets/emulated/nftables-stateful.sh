# shellcheck shell=dash disable=SC2034,SC2154
# A router with the rules of resources/rulesets/nftables/stateful.nft.
use nf_conntrack nf_conntrack_netlink nft_ct
router
rules nftables/stateful.nft

prove() {
    forwarded $PASSED
    tracked $OPENED
    check 3 "$(dut nft list chain ip ctbench forward | busybox grep -c accept)" "rules"
}
