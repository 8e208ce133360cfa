# shellcheck shell=dash disable=SC2034,SC2154
# Stateful iptables with 10 rules more that every packet is compared with first, and none of which it matches.
more_rules 10

prove() { prove_more_rules 10 "$1"; }
