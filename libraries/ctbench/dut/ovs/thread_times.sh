# shellcheck shell=sh
# Prints for each thread of a process its kind, its ID, and how long it ran, and was ready to run and did not, in
# nanoseconds: schedstat's first two fields (Linux, Documentation/scheduler/sched-stats.rst). A kernel without it prints
# nothing. Of a PMD thread also its name, which has its CPU, and how often it gave its CPU up by itself (proc(5)). At
# last the clock ticks of each CPU, proc(5), stat.
for task in /proc/"$1"/task/*; do
    read -r name <"$task/comm" && read -r ran waited slices <"$task/schedstat" || continue
    case $name in
    pmd*)
        while read -r key value; do
            case $key in voluntary_ctxt_switches:) slept=$value ;; esac
        done <"$task/status"
        echo "pmd ${task##*/} $ran $waited $slept $name" ;;
    *) echo "other ${task##*/} $ran $waited" ;;
    esac
done
grep "^cpu[0-9]" /proc/stat
