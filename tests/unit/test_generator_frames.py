"""The software generator takes what comes, whatever it is: frames on a wire that damages them, with checksums that were
mended or not, and descriptors that lie. Nothing is touched outside of a buffer (test_generator_sanitized.py runs this
with sanitizers), and what was counted adds up."""

import ctypes
import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from packets import internet_checksum, rewrite
from sanitized import poison
from wire import put, take

from ctbench.traffic.loads import Load, Rate, Saturation
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile, Profile
from ctgen import Cable, engine, library, plan
from ctgen import layout as lay
from ctgen import ring as r
from ctgen.memif import buffer_bytes
from ctgen.wiring import Wiring

#: Frames on a ring, bytes of a buffer, and the place of each.
FRAMES, BUFFER, STRIDE = 64, buffer_bytes(110) - 2, 256
RECORDS, ROUNDS = 40, 150

SIX = {"ip_version": 6, "client_ip": "2001:2:0:16::1", "server_ip": "2001:2:0:48::1"}
LONGER = SIX | {"frame_bytes": 82}
FOUR: dict[str, object] = {}
CONNECTIONS = [
    {"messages": 2, "ended_by": "client"},
    {"messages": 1, "ended_by": "server", "udp_percent": 30.0},
    {"messages": 3, "ended_by": "reset", "half_open_per_s": 100.0},
    {"messages": 2, "server_wait_ms": 0.001, "ack_before_reply": True},
    {"messages": 3, "server_wait_ms": 0.002, "udp_percent": 60.0},
]


class Way:
    """A ring in memory that may be touched in its buffers only, with both ends' view of it."""

    def __init__(self) -> None:
        self._memory = ctypes.create_string_buffer(FRAMES * (STRIDE + r.DESCRIPTOR_BYTES) + 64)
        at = -(-ctypes.addressof(self._memory) // 16) * 16
        indices, descriptors, buffers = at, at + 16, at + 16 + FRAMES * r.DESCRIPTOR_BYTES
        self.producer, self.consumer = (
            lay.Ring(
                produced=indices, consumed=indices + 2, descriptors=descriptors, first=buffers, mask=FRAMES - 1,
                bias=bias, buffer_bytes=BUFFER, stride=STRIDE,
            )
            for bias in (FRAMES, 0)
        )  # fmt: skip
        for number in range(FRAMES):
            place = number * STRIDE
            ctypes.memmove(descriptors + number * r.DESCRIPTOR_BYTES, struct.pack("<HHII", 0, 0, BUFFER, place), 12)
            poison(buffers + place + BUFFER, STRIDE - BUFFER)

    def lie(self, ahead: int, field: int, value: int) -> None:
        """Have a descriptor say something else; -1: that of the frame that was put last."""
        place = self.producer.descriptors + ((self.producer.index + ahead) & self.producer.mask) * r.DESCRIPTOR_BYTES
        ctypes.c_uint32.from_address(place + field).value = value


class Ends(r.Port):
    """A port of the generator on such memory, and the other end of it."""

    def __init__(self) -> None:
        self.out, self.back = Way(), Way()
        self.tx, self.rx = (lay.Ring * 1)(self.out.producer), (lay.Ring * 1)(self.back.consumer)

    def sent(self) -> list[bytes]:
        return take(self.out.consumer, FRAMES)

    def gets(self, frame: bytes, chance: random.Random) -> None:
        assert put(self.back.producer, frame[:BUFFER])
        if chance.random() < 0.05:
            lengths = [0, 13, 14, 33, 34, 41, 59, BUFFER, BUFFER + 1, 0xFFFF, 0xFFFFFFFF]
            self.back.lie(-1, r.DESCRIPTOR_LENGTH, chance.choice(lengths))

    def check_link(self) -> None:
        """Nothing breaks."""

    def close(self) -> None:
        """Nothing is open."""


def mended(frame: bytes) -> bytes:
    """With right checksums, where it is a packet."""
    try:
        if frame[12:14] != b"\x86\xdd":
            return rewrite(frame)
        new, at = bytearray(frame), {6: 70, 17: 60}[frame[20]]
        new[at : at + 2] = bytes(2)
        pseudo = bytes(new[22:54]) + struct.pack("!IHBB", len(new) - 54, 0, 0, new[20])
        struct.pack_into("!H", new, 18, len(new) - 54)
        struct.pack_into("!H", new, at, internet_checksum(pseudo + bytes(new[54:])))
        return bytes(new)
    except (struct.error, IndexError, KeyError):
        return frame


def damaged(frame: bytes, chance: random.Random) -> bytes:
    new = bytearray(frame)
    match chance.randrange(5):
        case 0:
            new[chance.randrange(len(new))] ^= 1 << chance.randrange(8)
        case 1:
            del new[chance.randrange(len(new)) :]
        case 2:
            new += chance.randbytes(chance.randrange(1, 40))
        case 3:  # in the headers, which say how long everything is
            at = chance.randrange(12, min(len(new), 70))
            extreme = chance.choice([b"\0", b"\xff", b"\xff\xff", b"\0\0", b"\x7f\xff", b"\x80\0", b"\xff\xff\xff\xff"])
            new[at : at + len(extreme)] = extreme
        case _:
            new = bytearray(chance.randbytes(chance.randrange(1, BUFFER)))
    return mended(bytes(new)) if chance.random() < 0.5 else bytes(new)


def through(frames: list[bytes], chance: random.Random) -> Iterator[bytes]:
    """What comes out of a wire: frames are lost, doubled, late and damaged."""
    chance.shuffle(frames)
    for frame in frames[: FRAMES // 2]:
        match chance.randrange(9):
            case 0:
                yield damaged(frame, chance)
            case 1:
                yield from (frame, damaged(frame, chance))
            case 2:
                yield from (frame, frame)
            case 3 if chance.random() < 0.3:
                pass
            case _:
                yield frame


def prepared(profile: Profile, load: Load, under_way: int) -> tuple[ctypes.Structure, Ends, Ends, object]:
    client, server = Ends(), Ends()
    of = lay.Run(parameters=plan.parameters(profile, load, plan.timing_of(profile, load, 1.0), 1e9, 1, under_way))
    Wiring(client, server, Cable(), "memory").join(of.parameters, profile)
    kept: object
    if isinstance(profile, PacketProfile):
        kept = records = (lay.Flow * profile.flows)()
        kept = payloads = plan.payloads(profile), records
        of.parameters.payloads, of.parameters.payload_count = ctypes.addressof(payloads[0]), len(payloads[0])
    else:
        kept = records = (lay.Connection * RECORDS)()
        for slot, record in enumerate(records):
            record.next = slot + 1 if slot + 1 < RECORDS else lay.NOBODY
        of.state.waiting_first = of.state.waiting_last = lay.NOBODY
    of.parameters.records = ctypes.addressof(records)
    return of, client, server, kept


def free_records(of: ctypes.Structure, records: "ctypes.Array[ctypes.Structure]") -> int:
    """How many are in the list of free ones, which ends."""
    count, slot = 0, of.state.free_head
    while slot != lay.NOBODY:
        assert records[slot].states[lay.CLIENT] == lay.constants()["FREE"]
        count, slot = count + 1, records[slot].next
        assert count <= RECORDS
    return count


def waiting(of: ctypes.Structure, records: "ctypes.Array[ctypes.Structure]") -> int:
    """How many are in the queue of replies, which ends, and has no record twice nor a free one."""
    seen, slot = list[int](), of.state.waiting_first
    while slot != lay.NOBODY:
        assert slot not in seen and records[slot].states[lay.CLIENT] != lay.constants()["FREE"]
        seen.append(slot)
        slot = records[slot].next
    assert of.state.waiting_last == (seen[-1] if seen else lay.NOBODY)
    return len(seen)


@pytest.mark.parametrize("version", [FOUR, SIX], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("changes", CONNECTIONS, ids=lambda changes: str(changes.get("ended_by", "waits")))
def test_damaged_frames_of_connections_do_no_harm(changes: dict[str, object], version: dict[str, object]) -> None:
    profile = ConnectionProfile(name="any", client_ips=100, server_ips=10, **changes, **version)  # type: ignore[arg-type]
    of, client, server, records = prepared(profile, Rate(1000), 0)
    kernel, chance = library.kernel(), random.Random(str((changes, version)))
    now, came, most_waited = 0, {lay.CLIENT: 0, lay.SERVER: 0}, 0
    for _ in range(ROUNDS):
        now += chance.choice([1_000_000, 10_000_000, 100_000_000])
        while of.state.active < RECORDS and chance.random() < 0.8:
            kernel.begin(ctypes.byref(of), ctypes.c_int64(now), ctypes.c_bool(True), ctypes.c_int64(profile.messages))
        if profile.half_open_per_s:
            syns = kernel.send_due_syns
            syns.restype = ctypes.c_double
            syns(ctypes.byref(of), ctypes.c_double(now), ctypes.c_int64(now))
        for port, other, side, poll in (
            (server, client, lay.SERVER, kernel.poll_server),
            (client, server, lay.CLIENT, kernel.poll_client),
        ):
            for frame in through(other.sent(), chance):
                port.gets(frame, chance)
                came[side] += 1
            poll(ctypes.byref(of), ctypes.c_int64(kernel.read_cycles() - now))
        most_waited = max(most_waited, waiting(of, records))  # type: ignore[arg-type]
        kernel.send_due_replies(ctypes.byref(of), ctypes.c_int64(now))
        kernel.sweep(ctypes.byref(of), ctypes.c_int64(now))
        assert 0 <= of.state.active <= RECORDS
        assert free_records(of, records) == RECORDS - of.state.active  # type: ignore[arg-type]
    counts = of.counts
    seen = sum(counts.rx_packets) + counts.half_passed + counts.half_answered
    assert 0 <= sum(came.values()) - seen < 2 * FRAMES  # what the last poll left
    assert bool(most_waited) is (profile.server_wait_ms > 0)
    assert counts.all_completed > 0 and counts.all_failed > 0 and counts.foreign > 0
    assert sum(engine.failed_of(counts).values()) <= counts.all_failed


def test_the_end_of_a_warm_trial_looks_at_every_connection() -> None:
    """A tick looks at some of them only: those that failed in the last half second would count as held."""
    profile = ConnectionProfile(name="any", client_ips=100, server_ips=10)
    of, _client, _server, _kept = prepared(profile, Rate(1000), 0)
    kernel, many = library.kernel(), 100
    records = (lay.Connection * many)(*(lay.Connection(next=slot + 1) for slot in range(many)))
    of.parameters.records = ctypes.addressof(records)
    for _ in range(many):
        kernel.begin(ctypes.byref(of), ctypes.c_int64(0), ctypes.c_bool(True), ctypes.c_int64(1))
    late = ctypes.c_int64((of.parameters.timeout_ticks + 2) << of.parameters.tick_shift)
    kernel.sweep(ctypes.byref(of), late)
    assert sum(of.counts.failed) == 64
    kernel.sweep_all(ctypes.byref(of), late)
    assert sum(of.counts.failed) == many and of.state.active == 0


@pytest.mark.parametrize("offset", [FRAMES * STRIDE, 0x80000000, 0xFFFFFFFF])
def test_a_buffer_that_is_said_to_be_elsewhere_is_not_touched(offset: int) -> None:
    profile = ConnectionProfile(name="any", client_ips=100, server_ips=10)
    of, client, server, _kept = prepared(profile, Rate(1000), 0)
    kernel = library.kernel()
    client.out.lie(0, r.DESCRIPTOR_OFFSET, offset)
    kernel.begin(ctypes.byref(of), ctypes.c_int64(1_000_000), ctypes.c_bool(True), ctypes.c_int64(1))
    assert put(server.back.producer, bytes(60))
    server.back.lie(-1, r.DESCRIPTOR_OFFSET, offset)
    kernel.poll_server(ctypes.byref(of), ctypes.c_int64(0))
    assert of.counts.tx_packets[lay.CLIENT] == of.counts.rx_packets[lay.SERVER] == of.counts.foreign == 1


@pytest.mark.parametrize("own", [FOUR, {"vlan": 7}, {"fragments": 2, "frame_bytes": 70}, LONGER, LONGER | {"vlan": 7}])
def test_damaged_packets_do_no_harm(own: dict[str, object]) -> None:
    profile = PacketProfile(
        name="any", kind="packets", client_ips=10, server_ips=5, flows=50, directions="both", **own,  # type: ignore[arg-type]
    )  # fmt: skip
    of, client, server, _kept = prepared(profile, Saturation(32), 32)
    source = Path(__file__).parents[1] / "kernel_frames.c"
    parts, chance = ctypes.CDLL(str(library.built([source], library.FLAGS))), random.Random(str(own))
    for now in range(ROUNDS):
        parts.part_send_packets(ctypes.byref(of), ctypes.c_int64(now))
        for port, other in ((server, client), (client, server)):
            for frame in through(other.sent(), chance):
                port.gets(frame, chance)
        parts.part_poll_packets(ctypes.byref(of))
        of.counts.all_failed = of.state.sent - of.counts.all_completed  # a loop would write them off
    counts = of.counts
    assert sum(counts.completed) > ROUNDS and counts.foreign > 0 and counts.failed[lay.CAUSES.index("bad_checksum")] > 0
