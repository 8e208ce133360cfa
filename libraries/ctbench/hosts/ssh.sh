# What a host does for a command of a run that reaches it over SSH: POSIX sh, sent over the connection ahead of a call
# of one of these functions, so that nothing needs to be installed there and no command line shows what is run.
#
# A command lives no longer than its channel. Nothing comes on standard input after the command's own input, so its end
# is that of the channel: the client gave the command up, or the client or the connection is gone. Then the whole
# process group ends. sshd(8) made one for each channel, and with sudo(8) it is setsid(1).
# A reply begins with $marker, to be told from what a login may print.

LC_ALL=C
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin
export LC_ALL PATH
marker=ctbench-reply
folder=
exec 3<&0

# check PROGRAM: ends here where there is no such program.
check() {
    command -v "$1" >/dev/null && return
    echo "$marker absent"
    exit
}

# end_with_channel: sets `watcher`.
end_with_channel() {
    {
        read -r _
        rm -rf "$folder"
        kill -s KILL 0
    } <&3 >/dev/null 2>&1 &
    watcher=$!
}

# run BYTES PROGRAM COMMAND...: gives the command so many bytes of input, and says how it ended, how much it printed,
# that, and what it complained of. A daemon that it leaves behind may go on printing: that is not waited for.
run() {
    bytes=$1
    check "$2"
    shift 2
    folder=$(mktemp -d /tmp/ctbench-XXXXXX) || exit
    head -c "$bytes" >"$folder/in"
    end_with_channel
    # The connection may have been lost before all was there.
    [ "$(wc -c <"$folder/in")" -eq "$bytes" ] || wait
    "$@" <"$folder/in" >>"$folder/out" 2>>"$folder/err" 3<&-
    status=$?
    kill "$watcher"
    out=$(($(wc -c <"$folder/out"))) err=$(($(wc -c <"$folder/err")))
    echo "$marker $status $out"
    head -c "$out" "$folder/out"
    head -c "$err" "$folder/err"
    rm -rf "$folder"
}

# start PROGRAM COMMAND...: says the command's process ID and what it prints, until it ends, and ends as it does.
start() {
    check "$1"
    shift
    end_with_channel
    sh -c 'echo "$0 $$" && exec "$@"' "$marker" "$@" </dev/null 2>&1 3<&-
    status=$?
    kill "$watcher"
    exit "$status"
}
