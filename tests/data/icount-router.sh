# shellcheck shell=sh
# The namespaces, the wires and a router, as guest/library.sh of the emulated machine makes them.
set -e
mkdir -p /run/netns
for space in client server dut; do ip netns add $space; ip -n $space link set lo up; done
ip link add wire netns client address 02:00:00:00:00:21 type veth peer name client netns dut address 02:00:00:00:00:11
ip link add wire netns server address 02:00:00:00:00:22 type veth peer name server netns dut address 02:00:00:00:00:12
for space in client server dut; do
    for each in all default; do ip netns exec $space sh -c "echo 1 >/proc/sys/net/ipv6/conf/$each/disable_ipv6"; done
done
ip -n client link set wire up
ip -n server link set wire up
number=0
for side in client server; do
    ip -n dut link set $side up
    ip -n dut address add 198.18.$number.1/30 dev $side
    ip -n dut neighbour add 198.18.$number.2 lladdr 02:00:00:00:00:0$((number + 1)) dev $side nud permanent
    number=$((number + 1))
done
ip -n dut route add 16.0.0.0/8 via 198.18.0.2
ip -n dut route add 48.0.0.0/8 via 198.18.1.2
ip netns exec dut sh -c "echo 1 >/proc/sys/net/ipv4/ip_forward"
