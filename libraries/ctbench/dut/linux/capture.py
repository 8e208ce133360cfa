"""What a Linux router or bridge that failed is asked."""

from ctbench.dut.capture import KERNEL_LOG, Question

QUESTIONS = (
    Question("links", ("ip", "-s", "-s", "-d", "link", "show")),
    Question("routes", ("ip", "route", "show", "table", "all")),
    Question("neighbours", ("ip", "neighbour", "show")),
    Question("bridge", ("bridge", "-s", "vlan", "show")),
    Question("nftables", ("nft", "list", "ruleset")),
    Question("iptables", ("iptables-save", "-c")),
    Question("ip6tables", ("ip6tables-save", "-c")),
    Question("conntrack-count", ("conntrack", "-C")),
    Question("conntrack-statistics", ("conntrack", "-S")),
    Question("conntrack-settings", ("sysctl", "-a", "-r", "^net[.]netfilter[.]nf_conntrack")),
    Question("softnet", ("cat", "/proc/net/softnet_stat")),
    Question("memory", ("cat", "/proc/meminfo")),
    Question(*KERNEL_LOG),
)
