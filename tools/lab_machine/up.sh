#!/bin/sh
# QEMU calls it with the name of a tap that it has made, in the lab's own network namespace.
sysctl -q -w "net.ipv6.conf.$1.disable_ipv6=1"
case $1 in m*)
    ip link set lo up
    ip address add "192.0.2.$((4 * ${1#m} + 1))/30" dev "$1"
    ;;
esac
ip link set "$1" up
