# shellcheck shell=dash disable=SC2034,SC2154
# A router without netfilter, which has 10 000 routes more: /24 networks below that of the servers, the first of which is
# theirs (slide 6 of 2017).
router
busybox awk 'BEGIN { for (net = 0; net < 10000; net++)
    printf "route add 48.%d.%d.0/24 via 198.18.1.2\n", net / 256, net % 256 }' >/tmp/routes
dut ip -batch /tmp/routes

prove() {
    forwarded $PASSED
    tracked 0
    check 10000 "$(dut ip route show | busybox grep -c /24)" "routes to networks of servers"
}
