#!/bin/sh
# QEMU calls it with the name of a tap that it has made, in the lab's own network namespace.
sysctl -q -w "net.ipv6.conf.$1.disable_ipv6=1"
[ "$1" != m0 ] || ip link set lo up
[ "$1" != m0 ] || ip address add 192.0.2.1/24 dev m0
ip link set "$1" up
