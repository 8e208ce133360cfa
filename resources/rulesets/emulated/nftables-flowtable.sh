# shellcheck shell=dash disable=SC2034,SC2154
# A router whose established connections take the short cut of a flowtable (software offload): not even routed any more.
use nf_conntrack nf_conntrack_netlink nft_ct nf_flow_table_inet nft_flow_offload
router
cat_rules() {
    echo "table inet ctbench {"
    echo "    flowtable fast { hook ingress priority 0; devices = { $CLIENT, $SERVER }; }"
    echo "    chain forward {"
    echo "        type filter hook forward priority filter; policy drop;"
    echo "        ct state established flow add @fast"
    echo "        ct state established,related accept"
    echo "        iifname \"$CLIENT\" oifname \"$SERVER\" ct state new accept"
    echo "    }"
    echo "}"
}
cat_rules >/tmp/rules
dut nft -f /tmp/rules

prove() {
    tracked $OPENED
    case $1 in stream)
        check $OPENED "$(ip netns exec dut conntrack -L 2>/dev/null | busybox grep -c OFFLOAD)" "connections offloaded"
        most=$((100 + 2 * OPENED))
        check yes "$([ "$(routed)" -lt $most ] && echo yes)" "less than $most packets routed"
        ;;
    esac
}
