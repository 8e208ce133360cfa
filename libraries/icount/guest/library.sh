# shellcheck shell=dash
# What the topologies (resources/rulesets/emulated) have in common. Sourced by the first process of an emulated machine.
#
# Three network namespaces: `client`, `dut`, `server`. The interfaces `client` and `server` of the DUT are the ends of
# wires (veth pairs), whose other ends are both called `wire`. What is said on the serial line is read by the host:
#   round NAME SENT RECEIVED INSTRUCTIONS    from the program guest/traffic
#   workload NAME                            what the following lines are about
#   check EXPECTED FOUND WHAT                a proof: worth nothing where the two differ
#   broken SENTENCE                          the end
export PATH=/usr/sbin:/usr/bin
busybox mount -t proc none /proc
busybox mount -t sysfs none /sys
busybox mount -t devtmpfs none /dev
exec >/dev/ttyS0 2>&1

CLIENT=client SERVER=server       # the devices that forward: the interfaces, or what `devices` puts on them
TO_SERVER=02:00:00:00:00:02       # where the client's frames go: past a bridge to the other end, else to the DUT
TO_CLIENT=02:00:00:00:00:01
VLAN=0
# How much is sent: rounds of packets of one flow, and of connections, after a first batch of these. PASSED and OPENED
# count what went through, ESTABLISHED what of a stream did after an answer.
ROUNDS=5 PACKETS=2048 NEW=256 FIRST=32 PASSED=0 OPENED=0 ESTABLISHED=0
WAITS=                            # whether each batch is waited for: where a program forwards it
UPCALLS=0                         # packets that a switch decides on by a program, besides the first ones
STREAMS_ONLY=                     # whether no connections are opened
OWN_BONDS=                        # whether Open vSwitch has a bond of its own on each side, with LACP on the server's
LACP=                             # plain or tagged: the server's side has two links, bonded as in 2014 (802.3ad)
TABLE=/proc/sys/net/netfilter/nf_conntrack_count

end() { busybox reboot -f; }
broken() { echo "broken $*"; end; }
check() { echo "check $*"; }
last() { :; }                     # what else is said at the end

# use MODULE... : load kernel modules.
use() { for module in "$@"; do busybox modprobe "$module" || broken "the kernel has no module $module"; done; }

# dut COMMAND... : run it where the DUT is.
dut() { ip netns exec dut "$@" || broken "$* failed"; }

# wires: the three namespaces and what joins them.
wires() {
    use veth
    for space in client dut server; do ip netns add $space || broken "no network namespace could be made"; done
    wire client 1
    if [ -n "$LACP" ]; then two_wires; else wire server 2; fi
}

# The ends have other addresses than the frames: what comes out is counted and dropped, before it is looked up where to
# route it, which makes work for later.
wire() {
    ip link add wire netns "$1" address 02:00:00:00:00:2"$2" type veth \
        peer name "$1" netns dut address 02:00:00:00:00:1"$2" || broken "no wire could be made"
    ip -n "$1" link set wire up
}

# two_wires: to the server, which bonds them by LACP; `wire` is that bond, or with LACP=tagged a VLAN device on it.
two_wires() {
    use bonding
    [ $LACP = plain ] && far=wire || far=trunk
    lacp_bond server $far 22
    for link in 0 1; do
        ip link add far$link netns server address 02:00:00:00:01:2$link type veth \
            peer name server$link netns dut address 02:00:00:00:01:1$link || broken "no wire could be made"
        ip -n server link set far$link master $far
    done
    ip -n server link set $far up
    [ $LACP = plain ] || tagged server $far wire
}

lacp_bond() {
    ip -n "$1" link add "$2" address 02:00:00:00:00:"$3" type bond mode 802.3ad xmit_hash_policy layer3+4 miimon 100 \
        || broken "no bond could be made"
}

# tagged NAMESPACE DEVICE NAME: a device of VLAN 100 on it.
tagged() {
    use 8021q
    ip -n "$1" link add link "$2" name "$3" type vlan id 100 || broken "no VLAN device could be made"
    ip -n "$1" link set "$3" up
}

# lacp_devices: the DUT's end of the two wires: a bond of the kernel, and on it with LACP=tagged a VLAN device.
lacp_devices() {
    if [ -z "$OWN_BONDS" ]; then
        SERVER=bond-server
        lacp_bond dut bond-server 12
        for link in 0 1; do dut ip link set server$link master bond-server; done
        dut ip link set bond-server up
        if [ $LACP = tagged ]; then
            tagged dut bond-server bond-server.100
            SERVER=bond-server.100
        fi
    else
        SERVER=server0
        for link in 0 1; do dut ip link set server$link up; done
    fi
    dut ip link set client up
}

# negotiated: wait until both links of the server's bond are in one aggregate with the DUT's.
negotiated() {
    tries=0
    until [ "$(aggregated)" = 2 ]; do
        tries=$((tries + 1))
        [ $tries -lt 60 ] || broken "LACP agreed on no bond of two links: $(ip netns exec server busybox cat /proc/net/bonding/$far)"
        busybox sleep 1
    done
}

# aggregated: how many links of the server's bond collect and distribute frames (bits 4 and 5 of the state that LACP has of
# a port), and do so at the DUT's end.
aggregated() {
    ip netns exec server busybox awk '/port state:/ && int($3 / 16) % 4 == 3 { good++ } END { print int(good / 2) }' \
        /proc/net/bonding/$far
}

# devices: what the setting PORTS puts on the interfaces: nothing, bonds of one link each, VLAN devices, or both.
devices() {
    if [ -n "$LACP" ]; then
        lacp_devices
        return
    fi
    case $PORTS in bond*)
        use bonding
        for side in client server; do
            dut ip link add bond-$side type bond mode balance-xor xmit_hash_policy layer3+4 miimon 100
            dut ip link set $side master bond-$side
            dut ip link set bond-$side up
        done
        CLIENT=bond-client SERVER=bond-server ;;
    esac
    case $PORTS in *vlan) VLAN=100 ;; esac
    dut ip link set client up
    dut ip link set server up
}

vlan_devices() {
    if [ $VLAN != 0 ]; then
        use 8021q
        for device in $CLIENT $SERVER; do
            dut ip link add link "$device" name "$device.$VLAN" type vlan id $VLAN
            dut ip link set "$device.$VLAN" up
        done
        CLIENT=$CLIENT.$VLAN SERVER=$SERVER.$VLAN
    fi
}

# up: wait until the devices are, which a bond and a bridge notice late. Sleeping costs no instruction that counts.
up() {
    for device in "$CLIENT" "$SERVER" "$@"; do
        tries=0
        until [ "$(ip netns exec dut busybox cat "/sys/class/net/$device/operstate")" = up ]; do
            tries=$((tries + 1))
            [ $tries -lt 100 ] || broken "$device did not come up"
            busybox sleep 0.1
        done
    done
}

# router: wires, and a router between them with static neighbours and routes.
router() {
    wires
    devices
    vlan_devices
    dut busybox sysctl -q -w net.ipv4.ip_forward=1
    side 0 1 "$CLIENT" 16.0.0.0/8
    side 1 2 "$SERVER" 48.0.0.0/8
    up
    [ -z "$LACP" ] || negotiated
    TO_SERVER=02:00:00:00:00:11 TO_CLIENT=02:00:00:00:00:12
}

side() {
    dut ip address add 198.18."$1".1/30 dev "$3"
    dut ip neighbour add 198.18."$1".2 lladdr 02:00:00:00:00:0"$2" dev "$3" nud permanent
    dut ip route add "$4" via 198.18."$1".2
}

# rules FILE: a ruleset of resources/rulesets, with the names of the devices that forward.
rules() {
    busybox sed "s/\\bclient\\b/$CLIENT/g; s/\\bserver\\b/$SERVER/g" "/guest/rulesets/$1" >/tmp/rules
    case $1 in
    *.rules) dut iptables-restore /tmp/rules ;;
    *.nft) dut nft -f /tmp/rules ;;
    esac
    [ "$(held)" = 0 ] || broken "the connection table is not empty"
}

# unmatched N: so many rules at the head of the chain that match no packet.
unmatched() {
    {
        echo "*filter"
        for number in $(busybox seq "$1"); do echo "-I FORWARD 1 -s 203.0.113.$number -j DROP"; done
        echo COMMIT
    } >/tmp/unmatched
    dut iptables-restore --noflush /tmp/unmatched
}

# more_rules N: stateful iptables with so many rules more; and what is to be proved of it after a workload.
more_rules() {
    use nf_conntrack nf_conntrack_netlink nft_compat xt_conntrack
    router
    rules iptables/stateful.rules
    unmatched "$1"
}

prove_more_rules() {
    forwarded $PASSED
    tracked $OPENED
    check "$1" "$(dut iptables -S FORWARD | busybox grep -c 203.0.113)" "rules that match nothing"
    [ "$2" != stream ] || accepted $ESTABLISHED
}

# begin WORKLOAD: say so, and wait until that is said: the serial line interrupts.
begin() {
    echo "workload $1"
    busybox sleep 1
}

# openvswitch FILE [netdev]: Open vSwitch between the wires, with flows of resources/rulesets/ovs. It uses the kernel's
# datapath, or that of the program itself (netdev).
openvswitch() {
    case ${2:-system} in
    netdev) use tun ;;
    *) use openvswitch ;;
    esac
    wires
    devices
    export OVS_RUNDIR=/run OVS_LOGDIR=/tmp OVS_DBDIR=/tmp OVS_SYSCONFDIR=/tmp
    dut ovsdb-tool create /tmp/conf.db /guest/vswitch.ovsschema
    dut ovsdb-server /tmp/conf.db --remote=punix:/run/db.sock --detach --no-chdir --pidfile -vconsole:off
    dut ovs-vsctl --no-wait init
    dut ovs-vswitchd --detach --no-chdir --pidfile -vconsole:off
    dut ovs-vsctl add-br bridge -- set bridge bridge fail_mode=secure datapath_type="${2:-system}"
    switch_port client "$CLIENT" 1
    switch_port server "$SERVER" 2
    up
    [ -z "$LACP" ] || negotiated
    busybox sed "s/\\bport0\\b/1/g; s/\\bport1\\b/2/g" "/guest/rulesets/ovs/$1" >/tmp/flows
    dut ovs-ofctl add-flows bridge /tmp/flows
    busybox sleep 1
}

# switch_port SIDE DEVICE NUMBER: a port of the switch, or, with OWN_BONDS, one of its own bonds: of this link, which it
# prefers, and of one that nobody answers on; with LACP, of the server's two links. A trunk of the VLAN where there is one.
# shellcheck disable=SC2046  # no word, or one
switch_port() {
    case $OWN_BONDS$LACP$1 in yesplainserver | yestaggedserver)
        dut ovs-vsctl add-bond bridge bond-server server0 server1 lacp=active bond_mode=balance-tcp
        return ;;
    esac
    if [ -n "$OWN_BONDS" ] && [ -z "$LACP" ]; then
        dut ip link add "spare-$1" type dummy
        dut ip link set "spare-$1" up
        dut ovs-vsctl add-bond bridge "bond-$1" "$2" "spare-$1" bond_mode=active-backup \
            other_config:bond-primary="$2" $(trunk)
    else
        dut ovs-vsctl add-port bridge "$2" $(trunk) $(access "$1") -- set interface "$2" ofport_request="$3"
    fi
}

access() { [ $LACP$1 != taggedclient ] || echo tag=100; }
trunk() { [ $VLAN = 0 ] || echo vlan_mode=trunk trunks=$VLAN; }

# measure: what the setting WORKLOADS names; what each workload proves is the topology's to say.
measure() {
    case $WORKLOADS in
    stream-1k) streams 1000 ;;
    stream-10k)
        PACKETS=10016
        room 65536
        streams 10000
        ;;
    usual)
        streams 1
        [ -z "$STREAMS_ONLY" ] || return 0
        connections udp 2
        connections tcp 6
        [ "$(held)" = 0 ] || removals_and_dumps
        ;;
    waits)
        NEW=128 WAITS=waits
        streams 1
        connections udp 2
        connections tcp 6
        ;;
    esac
}

# streams FLOWS: packets of so many flows, each of which was answered before.
streams() {
    [ "$1" = 1 ] && name=stream || name=$WORKLOADS
    begin $name
    traffic stream "$1" $PACKETS $ROUNDS
    ESTABLISHED=$(($1 + ROUNDS * PACKETS)) PASSED=$((3 * $1 + ROUNDS * PACKETS)) OPENED=$1
    prove stream
}

# connections PROTOCOL N: new ones, of so many packets each.
connections() {
    begin "$1"
    traffic "$1" $NEW $ROUNDS
    PASSED=$((PASSED + $2 * (FIRST + ROUNDS * NEW))) OPENED=$((OPENED + FIRST + ROUNDS * NEW))
    prove "$1"
}

# removals_and_dumps: connections are opened and removed from the kernel's table; opened, read out of it, and removed.
removals_and_dumps() {
    for name in removal dump; do
        begin $name
        traffic $name $NEW $ROUNDS
        PASSED=$((PASSED + 2 * ROUNDS * NEW)) OPENED=0
        prove $name
    done
}

# shellcheck disable=SC2086  # WAITS is a word or none
traffic() { /guest/traffic "$@" $TO_SERVER $TO_CLIENT $VLAN $WAITS || broken "no $1 could be sent"; }

# room N: for so many connections, in the kernel's table of connections where there is one.
room() {
    if [ -e $TABLE ]; then
        echo "$1" >/sys/module/nf_conntrack/parameters/hashsize
        busybox sysctl -q -w net.netfilter.nf_conntrack_max="$1"
    fi
}

# --- proofs ----------------------------------------------------------------------------------------------------------

# routed: how many packets were.
routed() { dut busybox awk '/^Ip:/ { if (++line == 2) print $7 }' /proc/net/snmp; }

# forwarded N: so many packets were routed.
forwarded() { check "$1" "$(routed)" "packets routed"; }

# switched N: so many packets were forwarded by flows of the datapath and not by the program, of the stream at least.
switched() {
    missed=$(dut ovs-appctl dpctl/show | busybox sed -n 's/.*lookups: hit:\([0-9]*\) missed:\([0-9]*\) .*/\2/p')
    most=$((100 + UPCALLS))
    check yes "$([ "${missed:-999999}" -lt $most ] && echo yes)" "less than $most packets decided on by the program"
    hits=$(dut ovs-appctl dpctl/show | busybox sed -n 's/.*lookups: hit:\([0-9]*\) .*/\1/p')
    check yes "$([ "${hits:-0}" -ge "$(($1 - most))" ] && echo yes)" "$1 packets forwarded by flows of the datapath"
}

# held: how many connections the kernel's table holds; none where there is no table.
held() { [ ! -e $TABLE ] && echo 0 || dut busybox cat $TABLE; }

# tracked N: so many connections are in the kernel's table.
tracked() {
    check "$1" "$(held)" "connections in the table"
}

# translated KIND N: so many of them are translated: src or dst.
translated() {
    found=$(ip netns exec dut conntrack -L "--$1-nat" 2>/dev/null | busybox wc -l)
    check "$2" "$found" "connections with $1 translated"
}

# tracked_by_program N [TEXT]: so many connections are in the table of Open vSwitch's own datapath, each with a text.
tracked_by_program() {
    found=$(dut ovs-appctl dpctl/dump-conntrack | busybox grep -c "orig=.*reply=.*${2:-}")
    check "$1" "$found" "connections in the switch's own table${2:+ with $2}"
}

# found_in_cache yes|no: at least as many look-ups as packets that passed were answered by the exact match cache of Open
# vSwitch's own datapath, or none was.
found_in_cache() {
    # `  emc hits: 5`, and since 4.0 `  - EMC hits:    5  ( 1.0 %)`, and nothing of a thread that got no packet.
    hits=$(dut ovs-appctl dpif-netdev/pmd-stats-show | busybox awk '
        tolower($0) ~ /emc hits:/ { sub(/.*:/, ""); hits += $1; known = 1 }
        END { print known ? hits : "unknown" }')
    case $1 in
    no) check 0 "$hits" "look-ups answered by the exact match cache" ;;
    *) check yes "$([ "$hits" -ge $PASSED ] && echo yes)" "$PASSED look-ups answered by the exact match cache" ;;
    esac
}

# accepted N: so many packets of clients were accepted as of an established connection, by the rule's own counter.
accepted() {
    found=$(ip netns exec dut iptables -L FORWARD -v -x -n | busybox awk -v in_="$CLIENT" \
        '/ESTABLISHED/ && $6 == in_ { print $1 }')
    check "$1" "$found" "packets accepted by the rule about established connections"
}

# members: each bond has its link, and that carried what passed towards the server.
members() {
    case $PORTS in bond*)
        check server "$(dut busybox cat /sys/class/net/bond-server/bonding/slaves)" "link of the bond"
        ;;
    esac
}

# bonded: LACP has both links in one aggregate, with the DUT's own bond of the kernel or of Open vSwitch.
bonded() {
    check 2 "$(aggregated)" "links of the bond of the partner"
    if [ -n "$OWN_BONDS" ]; then
        found=$(dut ovs-appctl bond/show bond-server | busybox grep -c "lacp_status: negotiated\|bond_mode: balance-tcp")
        check 2 "$found" "lines of Open vSwitch about balance-tcp and LACP"
    else
        check 1 "$(dut busybox grep -c "Number of ports: 2" /proc/net/bonding/bond-server)" "aggregate of two links of the DUT's bond"
    fi
}

# learnt: the addresses of both ends are known to Open vSwitch, in the VLAN that the frames carry.
learnt() {
    found=$(dut ovs-appctl fdb/show bridge | busybox awk -v vlan=$VLAN '$2 == vlan && $3 ~ /^02:00:00:00:00:0[12]$/' | busybox wc -l)
    check 2 "$found" "addresses learnt by Open vSwitch"
}

# active SIDE: the link of its own bond that Open vSwitch sends on.
active() {
    found=$(dut ovs-appctl bond/show "bond-$1" | busybox sed -n 's/^active.*(\(.*\))$/\1/p')
    check "$1" "$found" "the link that a bond of Open vSwitch sends on"
}
