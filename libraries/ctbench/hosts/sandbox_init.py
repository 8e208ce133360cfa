"""PID 1 of a sandbox: it reports that it runs, and ends, with every process of the sandbox, when its holder has gone.

Runs alone (`python -I -S sandbox_init.py`, standard library only) in fresh user, network, mount and PID namespaces.
File descriptor 0 is one end of a UNIX socket pair; the process that made the sandbox holds the other.
"""

import contextlib
import os
import signal
import socket


def report_ended(holder: socket.socket) -> None:
    """Collect the orphans that ended, and send the holder `PID STATUS` for each that failed, the status negative for a
    signal. A holder that does not read misses the last ones."""
    with contextlib.suppress(ChildProcessError):  # no child is left
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended[0], os.waitstatus_to_exitcode(ended[1])
            if status:
                with contextlib.suppress(OSError):
                    holder.send(f"{pid} {status}".encode(), socket.MSG_DONTWAIT)


def main() -> None:
    """Send `ready`, collect orphans, wait for the other end of the socket to close."""
    holder = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, lambda *_: report_ended(holder))
    holder.send(b"ready")
    holder.recv(1)  # returns when the holder closes its end, or dies


if __name__ == "__main__":
    main()
