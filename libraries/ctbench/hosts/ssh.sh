# What a host does for a run that reaches it over SSH: POSIX sh, sent over the connection ahead of a call of one of these
# functions, so that nothing needs to be installed there and no command line shows what is run.
#
# A command is a job: a process group of its own, and a folder with what it reads and prints and who it is. The jobs of
# one client are in one folder, its session. Replies begin with $nonce, to be told from what a login shell may print.
#   SESSION/connection        the sshd that the client came through, as identity
#   SESSION/job.*/argv, in, out, err, status
#   SESSION/job.*/leader, command   identities: the shell that leads the group and waits, and the command
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

# await_end JOB SECONDS: whether its group has ended within this time.
await_end() {
    tries=$(($2 * 20))
    while working "$1"; do
        [ "$tries" -gt 0 ] || return 1
        tries=$((tries - 1))
        sleep 0.05
    done
}

# --- sessions -------------------------------------------------------------------------------------------------------

# open_session NAME: makes it, or finds it again after the connection was lost; says which others there are.
open_session() {
    if [ "$(id -u)" = 0 ]; then home=/run/ctbench/ssh; else home=/tmp/ctbench-$(id -u); fi
    # Somebody else may have made it in /tmp: nothing of theirs is trusted.
    if [ -L "$home" ] || ! mkdir -p -m 700 "$home/$1" || ! chmod 700 "$home"; then
        echo "$nonce refused $home"
        return
    fi
    came_through >"$home/$1/connection"
    echo "$nonce session $home/$1"
    for other in "$home"/*/; do
        other=${other%/}
        if alive "$other/connection"; then state=connected; else state=alone; fi
        echo "$nonce other $state $other"
    done
    echo "$nonce done"
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

# end_sessions SECONDS SESSION...: asks what still works to end, and insists after SECONDS; says what that was.
end_sessions() {
    patience=$1
    shift
    for session in "$@"; do
        for job in "$session"/job.*; do
            working "$job" || continue
            echo "$nonce ended $(tr '\n' ' ' <"$job/argv")"
            kill -s TERM -- "-$pgrp" 2>/dev/null
        done
        for job in "$session"/job.*; do
            await_end "$job" "$patience" || kill_group "$job"
        done
        rm -rf "$session"
        rmdir "${session%/*}" 2>/dev/null && rmdir /run/ctbench 2>/dev/null
    done
    echo "$nonce done"
}

# --- jobs -----------------------------------------------------------------------------------------------------------

# new_job SESSION BYTES ARGV...: sets job, which the client knows by the nonce even if no reply arrives; its input is
# what stands in stdin.
new_job() {
    job=$1/job.$nonce
    mkdir -m 700 "$job" || exit
    bytes=$2
    shift 2
    printf '%s\n' "$@" >"$job/argv"
    : >"$job/out"
    head -c "$bytes" >"$job/in"
    if [ "$(($(wc -c <"$job/in")))" != "$bytes" ]; then
        rm -rf "$job" # the connection was lost before it was all there
        exit
    fi
}

# What a job's own shell does before it becomes the command.
become='cut -d " " -f 1,22 "/proc/$$/stat" >"$1/command"
if command -v "$3" >/dev/null; then echo "$2 started $$"; else echo "$2 absent"; fi >&3
shift 2
exec "$@" 3>&-'

# run SESSION BYTES ARGV...: runs it in this shell's group, and says how it ended and what it printed.
run() {
    new_job "$@"
    shift 2
    identity $$ >"$job/leader"
    exec 3>&1
    input=$job/in output=$job/out errors=$job/err
    in_environment sh -c "$become" sh "$job" "$nonce" "$@"
    status=$?
    # A daemon that it left behind may go on printing: what counts was there when the command ended.
    out=$(($(wc -c <"$job/out"))) err=$(($(wc -c <"$job/err")))
    echo "$nonce ended $status $out $err"
    head -c "$out" "$job/out"
    head -c "$err" "$job/err"
    rm -rf "$job"
}

# start SESSION BYTES ARGV...: leaves it running. The input is this file with a call of `background`. No `&`: that
# would have the command ignore SIGINT. setsid(1) forks, because this shell leads its group.
start() {
    new_job "$@"
    exec setsid sh "$job/in" "$job"
}

# background FOLDER OUTPUT ARGV...: the job whose folder it is, in the group of its own that it was given.
background() {
    job=$1 input=/dev/null output=$2 errors=$2
    shift 2
    # The client may have gone when it ends.
    exec 3>&1 </dev/null >/dev/null 2>&1
    identity $$ >"$job/leader"
    in_environment sh -c "$become" sh "$job" "$nonce" "$@"
    echo $? >"$job/status.new"
    mv "$job/status.new" "$job/status"
}

# look JOB OFFSET LIMIT: whether it still runs, and at most LIMIT bytes of what it printed after the first OFFSET.
look() {
    state=running
    alive "$1/leader" || state='ended 137'
    [ ! -e "$1/status" ] || state="ended $(cat "$1/status")"
    printed=$(($(wc -c <"$1/out") - $2))
    [ "$printed" -le "$3" ] || printed=$3
    echo "$nonce $state $printed"
    tail -c "+$(($2 + 1))" "$1/out" | head -c "$printed"
}

# ask_job JOB: asks the command to end.
ask_job() {
    alive "$1/command" && kill -s TERM "$pid"
    echo "$nonce done"
}

# kill_job JOB: ends its whole group at once.
kill_job() {
    kill_group "$1"
    echo "$nonce done"
}

# drop_job JOB: ends what is left of it, and forgets it.
drop_job() {
    kill_group "$1"
    rm -rf "$1"
    echo "$nonce done"
}

kill_group() {
    working "$1" || return
    kill -s KILL -- "-$pgrp" 2>/dev/null
    await_end "$1" 5
}
