# shellcheck shell=dash
# The last act of a machine whose functions are counted, behind the topology that it is given: it says on the second
# serial line, packed, what is at which address: the kernel's symbols, and what Open vSwitch has mapped.
last() {
    busybox stty -F /dev/ttyS1 raw -echo
    {
        busybox awk '$2 ~ /^[tTwW]$/ { print "symbol", $1, $3, $4 }' /proc/kallsyms
        for process in $(busybox pidof ovs-vswitchd); do
            busybox awk '$2 ~ /x/ && $6 ~ /^\// { print "mapped", $1, $3, $6 }' "/proc/$process/maps"
        done
        echo end
    } | busybox gzip >/dev/ttyS1
}
