"""Polling: frames are taken from a port's rings, and each is given to the end of the connection that it belongs to."""

from typing import Any

from numba import njit

from ctbench.traffic.software import arp, half_open, ipv6, ndp
from ctbench.traffic.software import connection as c
from ctbench.traffic.software import frames as f
from ctbench.traffic.software import layout as lay
from ctbench.traffic.software import ring as r
from ctbench.traffic.software.ipv6_header import NEXT_HEADER
from ctbench.traffic.software.lifecycle import fail, find
from ctbench.traffic.software.machine_code import load8, prefetch

#: Frames taken from one ring before the others have their turn.
_BURST = 32
#: Connection records are fetched this many frames ahead.
_AHEAD = 3


def poller(client_end: Any, server_end: Any) -> Any:
    """A function of numba's that polls a port. Kernel functions differ in what the two ends do about a frame."""

    @njit(nogil=True, forceinline=True, error_model="numpy")
    def poll(rx, rings, tx, port, now, p, s, counts, histograms):  # type: ignore[no-untyped-def]
        """Take a burst of frames from each ring of a port. Returns how many there were."""
        seen = 0
        shift = p[lay.SHIFT]
        protocol_at = NEXT_HEADER if shift else f.IP_PROTOCOL
        headers, first, many, next_hop = p[lay.SERVER_MACS], p[lay.SERVER_IP], p[lay.SERVER_IPS], p[lay.SERVER_NEXT_HOP]
        if port == lay.CLIENT:
            headers, first, many = p[lay.CLIENT_MACS], p[lay.CLIENT_IP], p[lay.CLIENT_IPS]
            next_hop = p[lay.CLIENT_NEXT_HOP]
        for queue in range(rings):
            ring = rx + queue * r.ROW_BYTES
            waiting = r.frames_waiting(ring)
            if waiting == 0:
                continue
            if waiting > _BURST:
                waiting = _BURST
            for ahead in range(waiting):
                r.prefetch_frame(ring, ahead)
            for ahead in range(waiting):
                if ahead + _AHEAD < waiting:
                    later, _ = r.frame_at(ring, ahead + _AHEAD)
                    slot = f.tag_ahead(later + shift, load8(later + protocol_at), port == lay.CLIENT) & lay.SLOT_MASK
                    if slot < s[lay.HIGHEST]:
                        prefetch(p[lay.RECORDS] + slot * c.RECORD_BYTES)
                frame, length = r.frame_at(ring, ahead)
                counts[lay.RX_PACKETS + port] += 1
                counts[lay.RX_BYTES + port] += length
                kind = ipv6.classify(frame, length, headers) if shift else f.classify(frame, length)
                if kind == f.IS_OTHER:
                    if shift:
                        done = ndp.answer(tx, frame, length, headers, first, many)
                    else:
                        done = arp.answer(tx, frame, length, headers, first, many, next_hop)
                    if done == arp.ANSWERED:
                        counts[lay.TX_PACKETS + port] += 1
                        counts[lay.TX_BYTES + port] += ndp.REPLY_BYTES if shift else arp.REPLY_BYTES
                    elif done == arp.NOT_ARP:
                        counts[lay.FOREIGN] += 1
                    continue
                frame += shift
                slot = find(frame, port == lay.CLIENT, p, s)
                if kind == f.IS_BAD_CHECKSUM:
                    if slot < 0:
                        counts[lay.FOREIGN] += 1
                    else:
                        fail(p[lay.RECORDS] + slot * c.RECORD_BYTES, slot, lay.CAUSE_BAD_CHECKSUM, s, counts)
                elif slot < 0:
                    answers = tx + queue % p[lay.QUEUES] * r.ROW_BYTES
                    if not p[lay.HALF_OPEN] or not half_open.take(frame, length, kind, port, answers, p, counts):
                        counts[lay.UNKNOWN] += 1
                elif port == lay.CLIENT:
                    client_end(frame, kind, slot, now, tx, p, s, counts, histograms)
                else:
                    server_end(frame, kind, slot, now, tx, p, s, counts, histograms)
            r.give_back(ring, waiting)
            seen += waiting
        return seen

    return poll
