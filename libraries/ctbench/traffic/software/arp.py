"""ARP (RFC 826): either port answers for the addresses that live behind it, so that a DUT finds them by itself."""

from numba import njit

from ctbench.traffic.software import ring as r
from ctbench.traffic.software.machine_code import load16, load32, store16, store32, store64, swap32

#: Offsets in the frame: operation, the sender's MAC and IP address, the target's.
_OPERATION, _SENDER_MAC, _SENDER_IP, _TARGET_MAC, _TARGET_IP = 20, 22, 28, 32, 38
_END = 42
#: Ethernet's least, without FCS.
REPLY_BYTES = 60

NOT_ARP, IGNORED, ANSWERED = 0, 1, 2

# As they stand in memory on a little-endian machine.
_ETHERTYPE_ARP = 0x0608
_ETHERNET_IPV4 = 0x0406_0008_0100  # hardware and protocol type and their lengths
_REQUEST, _REPLY = 0x0100, 0x0200


@njit(nogil=True, forceinline=True)
def answer(tx, frame, length, macs, first, count, next_hop):  # type: ignore[no-untyped-def]
    """Answer an ARP request for one of `count` addresses from `first`, or for `next_hop` (numbers; 0: none).

    `macs`: address of the port's Ethernet addresses, its own at 6. Returns `NOT_ARP`, `IGNORED` or `ANSWERED`, which
    put a frame of `REPLY_BYTES`.
    """
    if length < _END or load16(frame + 12) != _ETHERTYPE_ARP:
        return NOT_ARP
    target = swap32(load32(frame + _TARGET_IP))
    wanted = (first <= target < first + count) or (next_hop != 0 and target == next_hop)
    if load16(frame + _OPERATION) != _REQUEST or not wanted or not r.room(tx):
        return IGNORED
    out = r.next_buffer(tx)
    store32(out, load32(frame + _SENDER_MAC))
    store16(out + 4, load16(frame + _SENDER_MAC + 4))
    store32(out + 6, load32(macs + 6))
    store16(out + 10, load16(macs + 10))
    store16(out + 12, _ETHERTYPE_ARP)
    store64(out + 14, _ETHERNET_IPV4)
    store16(out + _OPERATION, _REPLY)
    store32(out + _SENDER_MAC, load32(macs + 6))
    store16(out + _SENDER_MAC + 4, load16(macs + 10))
    store32(out + _SENDER_IP, load32(frame + _TARGET_IP))
    store32(out + _TARGET_MAC, load32(frame + _SENDER_MAC))
    store16(out + _TARGET_MAC + 4, load16(frame + _SENDER_MAC + 4))
    store32(out + _TARGET_IP, load32(frame + _SENDER_IP))
    for at in range(_END, REPLY_BYTES, 2):
        store16(out + at, 0)
    r.put(tx, REPLY_BYTES)
    return ANSWERED
