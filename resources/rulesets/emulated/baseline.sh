# shellcheck shell=dash disable=SC2034,SC2154
# The wires and the traffic alone: what comes in on one side is sent out on the other, by the least that does that.
use sch_ingress cls_matchall act_mirred
wires
devices
for way in "client server" "server client"; do
    dut tc qdisc add dev "${way% *}" clsact
    dut tc filter add dev "${way% *}" ingress matchall action mirred egress redirect dev "${way#* }"
done
up

prove() {
    forwarded 0
    tracked 0
}
