"""A program that opens a socket in the network namespace that it runs in, and hands it to the caller.

Runs alone (`python -I -S socket_opener.py KIND`, standard library only), carried in by nsenter(1) and ip-netns(8). File
descriptor 0 is one end of a UNIX socket pair; a socket belongs to the namespace it was opened in, wherever it goes.
"""

import contextlib
import socket
import sys

#: Bytes that a packet socket may have under way.
SEND_BUFFER = 8 << 20
#: What Python has no names for: above what net.core.wmem_max allows, socket(7); and AF_XDP, linux/socket.h.
SO_SNDBUFFORCE = 32
#: Address family of each kind of socket.
FAMILIES = {"packet": socket.AF_PACKET, "xdp": 44}


def open_socket(kind: str) -> socket.socket:
    """Open an unbound socket. `packet`: a raw socket of packet(7) with protocol 0, which receives nothing; `xdp`: one
    of AF_XDP."""
    opened = socket.socket(FAMILIES[kind], socket.SOCK_RAW, 0)
    if kind == "packet":
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        with contextlib.suppress(PermissionError):  # only real root goes beyond the limit
            opened.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, SEND_BUFFER)
    return opened


def main() -> None:
    """Send the socket through file descriptor 0."""
    with socket.socket(fileno=0) as asked, open_socket(sys.argv[1]) as opened:
        socket.send_fds(asked, [b"socket"], [opened.fileno()])


if __name__ == "__main__":
    main()
