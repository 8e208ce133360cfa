# shellcheck shell=dash disable=SC2034,SC2154
# Stateful iptables with 1 rule more that every packet is compared with first, and which it does not match.
more_rules 1

prove() { prove_more_rules 1 "$1"; }
