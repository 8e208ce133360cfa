"""The record of one connection: 64 bytes, one cache line, both ends in it, and where its fields are.

The client end and the server end keep apart: neither reads the other's fields. What a server knows of its peer is
what it saw in the packet, so address translation in between makes no difference.
"""

from numba import njit

from ctbench.traffic.software.machine_code import load8, load32, store8, store32

RECORD_BYTES = 64

#: Offsets of 32-bit words. Addresses and ports as they stand in the packets that this end sends.
CLIENT_IP, CLIENT_PEER_IP, CLIENT_PORTS, CLIENT_SEQ, CLIENT_ACK = 0, 4, 8, 12, 16
SERVER_IP, SERVER_PEER_IP, SERVER_PORTS, SERVER_SEQ, SERVER_ACK = 20, 24, 28, 32, 36
#: Messages that the client has yet to ask (low 16 bits) and that the server has yet to answer (high 16 bits).
CLIENT_LEFT, SERVER_LEFT = 40, 42
#: Bytes: state of either end, flags, queue.
CLIENT_STATE, SERVER_STATE, FLAGS, QUEUE = 44, 45, 46, 47
#: Cycles / 64 of the first packet, later of the message under way (see `latency`); milliseconds (roughly) of the last
#: progress. Both wrap around.
STARTED, PROGRESS = 48, 52
#: The next record in the queue of waiting replies, or in the list of free records; when the reply is due (cycles / 64).
NEXT, REPLY_DUE = 56, 60

#: States of the client end. FREE: the record is not in use. DEAD: the connection has failed, but its server's reply
#: still waits in the queue and the record is free only when that is over.
FREE, SYN_SENT, AWAITS_REPLY, FIN_SENT, CLIENT_DONE, DEAD = 0, 1, 2, 3, 4, 5
#: Of a client whose server closes first: it has all replies.
AWAITS_FIN = 8
#: States of the server end.
LISTENING, SYN_RECEIVED, SERVING, LAST_ACK, FIN_WAIT, SERVER_DONE = 0, 1, 2, 3, 4, 5

#: Flags: begun in the sustain phase (and so counted), UDP, waits in the queue of replies, established.
COUNTED, UDP, REPLY_WAITS, ESTABLISHED = 1, 2, 4, 8

#: The end of a list of records.
NOBODY = 0xFFFFFFFF


@njit(nogil=True, forceinline=True)
def set_flag(record, flag):  # type: ignore[no-untyped-def]
    """Set a flag of the record at this address."""
    store8(record + FLAGS, load8(record + FLAGS) | flag)


@njit(nogil=True, forceinline=True)
def clear_flag(record, flag):  # type: ignore[no-untyped-def]
    """Clear a flag of the record at this address."""
    store8(record + FLAGS, load8(record + FLAGS) & ~flag)


@njit(nogil=True, forceinline=True)
def link_free(records, count):  # type: ignore[no-untyped-def]
    """Chain `count` records into the list of free ones, lowest first; returns the first."""
    for slot in range(count):
        record = records + slot * RECORD_BYTES
        store8(record + CLIENT_STATE, FREE)
        store32(record + NEXT, slot + 1 if slot + 1 < count else NOBODY)
    return 0


@njit(nogil=True, forceinline=True)
def take_free(records, first):  # type: ignore[no-untyped-def]
    """The free list after its first record was taken."""
    return load32(records + first * RECORD_BYTES + NEXT)
