"""PID 1 of a sandbox: makes its namespaces usable, says so, and ends (and with it all) when its holder has gone.

Runs alone (`python -I -S sandbox_init.py`, standard library only) in fresh user, network, mount and PID namespaces.
File descriptor 0 is one end of a UNIX socket pair; the process that made the sandbox holds the other.
"""

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys

#: Flags of mount(2), linux/mount.h.
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
#: netdevice(7): requests and the flag that brings an interface up.
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1


def mount(kind: str, target: str, flags: int) -> None:
    """mount(2) of a file system without a device; OSError names the target."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(kind.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"mount of {kind} on {target}: {os.strerror(number)}")


def bring_up(interface: str) -> None:
    """What `ip link set INTERFACE up` does."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", interface.encode(), 0)
        (flags,) = struct.unpack("16xH14x", fcntl.ioctl(control, SIOCGIFFLAGS, request))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sH14x", interface.encode(), flags | IFF_UP))


def report_ended(holder: socket.socket) -> None:
    """Collect the orphans that ended, and tell the holder of those that did not end well: `PID STATUS`, the status
    negative for a signal. A holder that never listens misses the last ones."""
    with contextlib.suppress(ChildProcessError):  # no child is left
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended[0], os.waitstatus_to_exitcode(ended[1])
            if status:
                with contextlib.suppress(OSError):
                    holder.send(f"{pid} {status}".encode(), socket.MSG_DONTWAIT)


def main() -> None:
    """Prepare, say `ready`, collect orphans, wait for the other end of the socket to close."""
    holder = socket.socket(fileno=0)
    signal.signal(signal.SIGCHLD, lambda *_: report_ended(holder))
    try:
        # A /run of our own: daemons keep sockets and locks there, and the host must not see any of it.
        mount("tmpfs", "/run", MS_NOSUID | MS_NODEV)
        # The host's /sys shows the host's interfaces; one mounted here shows those of this network namespace.
        mount("sysfs", "/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC)
        bring_up("lo")
    except OSError as error:
        sys.exit(f"sandbox: {error}")
    holder.send(b"ready")
    holder.recv(1)  # returns when the holder closes its end, or dies


if __name__ == "__main__":
    main()
