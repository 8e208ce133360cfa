# What a host does for a run that reaches it over SSH: POSIX sh, sent over the connection ahead of a call of one of these
# functions, so that nothing needs to be installed there and no command line shows what is run.
#
# A command is a job: a process group of its own, and a folder with what it reads and prints and who it is. The jobs of
# one client are in one folder, its session. A reply begins with $nonce, to be told from what a login shell may print,
# and ends when this shell does, with status 0.
#   SESSION/connection        the sshd that the client came through, as identity
#   SESSION/job.*/in, out, err, status
#   SESSION/job.*/leader, command   identities: the shell that leads the group and waits, and the command
#   SESSION/job.*/started           a named pipe: the job outlives the connection
# An identity is "PID TICKS", the process and when it started: an ID alone may be another's later.

LC_ALL=C
for folder in /usr/local/sbin /usr/sbin /sbin /usr/local/bin /usr/bin /bin; do
    case ":$PATH:" in
    *":$folder:"*) ;;
    *) PATH=$PATH:$folder ;;
    esac
done
export LC_ALL PATH

# identity PID: proc(5), fields 1 and 22 of /proc/PID/stat, of a program without a space in its name.
identity() {
    cut -d ' ' -f 1,22 "/proc/$1/stat"
}

# alive FILE: whether the process of this identity lives; sets pid and its process group, pgrp.
alive() {
    { read -r pid ticks <"$1"; } 2>/dev/null || return 1
    stat=$(cat "/proc/$pid/stat" 2>/dev/null) || return 1
    # Fields from the third on; the name before them may hold spaces.
    set -- ${stat##*) }
    pgrp=$3
    [ "$1" != Z ] && [ "$1" != X ] && [ "${20}" = "$ticks" ]
}

# working JOB: whether its group lives; sets pgrp.
working() {
    alive "$1/leader" || alive "$1/command"
}

# await_end JOB TWENTIETHS: whether its group has ended within this time, twentieths of a second.
await_end() {
    tries=$2
    while working "$1"; do
        [ "$tries" -gt 0 ] || return 1
        tries=$((tries - 1))
        sleep 0.05
    done
}

# --- sessions -------------------------------------------------------------------------------------------------------

# open_session NAME: makes it, or finds it again after the connection was lost, and says where it is, and which others
# have lost theirs: a line each. Ends what of this one was not to outlive the connection.
open_session() {
    if [ "$(id -u)" = 0 ]; then home=/run/ctbench/ssh; else home=/tmp/ctbench-$(id -u); fi
    # Somebody else may have made it in /tmp: nothing of theirs is trusted.
    if [ -L "$home" ] || ! mkdir -p -m 700 "$home/$1" || ! chmod 700 "$home"; then
        echo "$nonce refused $home"
        return
    fi
    came_through >"$home/$1/connection"
    for job in "$home/$1"/job.*; do
        [ -p "$job/started" ] || drop_job "$job" >/dev/null
    done
    echo "$nonce session $home/$1"
    for other in "$home"/*; do
        [ "$other" = "$home/$1" ] || alive "$other/connection" || echo "alone $other"
    done
}

# The identity of the sshd that this shell descends from; nothing when there is none.
came_through() {
    above=$$
    while [ "${above:-0}" -gt 1 ]; do
        case $(cat "/proc/$above/comm") in
        sshd*)
            identity "$above"
            return
            ;;
        esac
        above=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$above/status")
    done
}

# end_session SESSION: asks what still works to end, and insists after five seconds.
end_session() {
    for job in "$1"/job.*; do
        working "$job" && kill -s TERM -- "-$pgrp" 2>/dev/null
    done
    for job in "$1"/job.*; do
        await_end "$job" 100 || kill_group "$job"
    done
    rm -rf "$1"
    rmdir "${1%/*}" /run/ctbench 2>/dev/null
    echo "$nonce "
}

# --- jobs -----------------------------------------------------------------------------------------------------------

# new_job SESSION BYTES ARGV...: sets job, which the client knows by the nonce even if no reply arrives; its input is
# what stands in stdin.
new_job() {
    if ! command -v "$3" >/dev/null; then
        echo "$nonce absent"
        exit
    fi
    job=$1/job.$nonce
    mkdir -m 700 "$job" || exit
    bytes=$2
    : >"$job/out"
    head -c "$bytes" >"$job/in"
    if [ "$(($(wc -c <"$job/in")))" != "$bytes" ]; then
        rm -rf "$job" # the connection was lost before it was all there
        exit 1
    fi
}

# What a job's own shell does before it becomes the command.
become='cut -d " " -f 1,22 "/proc/$$/stat" >"$1/command"
if [ -p "$1/started" ]; then echo $$ >"$1/started"; fi
shift
exec "$@"'

# run SESSION BYTES ARGV...: runs it in this shell's group, and says how it ended, how much it printed, and that.
run() {
    new_job "$@"
    shift 2
    identity $$ >"$job/leader"
    input=$job/in output=$job/out errors=$job/err
    in_environment sh -c "$become" sh "$job" "$@"
    status=$?
    # A daemon that it left behind may go on printing: what counts was there when the command ended.
    out=$(($(wc -c <"$job/out"))) err=$(($(wc -c <"$job/err")))
    echo "$nonce $status $out"
    head -c "$out" "$job/out"
    head -c "$err" "$job/err"
    rm -rf "$job"
}

# start SESSION BYTES ARGV...: leaves it running, and says its process ID. The input is this file with a call of
# `background`. No `&` for that: it would have the command ignore SIGINT. setsid(1) forks, because this shell leads its
# group.
start() {
    new_job "$@"
    mkfifo "$job/started"
    { printf '%s ' "$nonce" && exec cat "$job/started"; } &
    exec setsid sh "$job/in" "$job" </dev/null >/dev/null 2>&1
}

# background FOLDER OUTPUT ARGV...: the job whose folder it is, in the group of its own that it was given.
background() {
    job=$1 input=/dev/null output=$2 errors=$2
    shift 2
    identity $$ >"$job/leader"
    in_environment sh -c "$become" sh "$job" "$@"
    echo $? >"$job/status.new"
    mv "$job/status.new" "$job/status"
}

# look JOB OFFSET: its status, or whether it still runs, and what it printed after the first OFFSET bytes.
look() {
    state=running
    alive "$1/leader" || state=137
    [ ! -e "$1/status" ] || state=$(cat "$1/status")
    echo "$nonce $state"
    tail -c "+$(($2 + 1))" "$1/out"
}

# stop JOB OFFSET TWENTIETHS: asks the command to end, ends its whole group after this time, looks, and forgets it.
stop() {
    alive "$1/command" && kill -s TERM "$pid"
    await_end "$1" "$3" || kill_group "$1"
    look "$1" "$2"
    rm -rf "$1"
}

# drop_job JOB: ends its whole group at once, and forgets it.
drop_job() {
    kill_group "$1"
    rm -rf "$1"
    echo "$nonce "
}

kill_group() {
    working "$1" || return
    kill -s KILL -- "-$pgrp" 2>/dev/null
    await_end "$1" 100
}
