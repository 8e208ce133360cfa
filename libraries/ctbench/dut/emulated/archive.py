"""An archive for the kernel to boot from: cpio in the format newc, the same bytes for the same files."""

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Entry:
    """A file, folder or link of the archive. A link's data is where it points."""

    mode: int
    data: bytes = b""


def folder() -> Entry:
    return Entry(stat.S_IFDIR | 0o755)


def file(data: bytes) -> Entry:
    return Entry(stat.S_IFREG | 0o755, data)


def link(to: str) -> Entry:
    return Entry(stat.S_IFLNK | 0o777, to.encode())


def pack(entries: Mapping[str, Entry]) -> bytes:
    """The archive: names sorted, with the folders that they are in, numbered from 1 on, of root and of no date."""
    above = (str(path) for name in entries for path in PurePosixPath(name).parents[:-1])
    every = dict.fromkeys(above, folder()) | dict(entries)
    packed = bytearray()
    for number, name in enumerate(sorted(every), 1):
        packed += _record(number, name, every[name])
    return bytes(packed + _record(0, "TRAILER!!!", Entry(0)))


def _record(number: int, name: str, entry: Entry) -> bytes:
    """One file: its header of 13 numbers, its name, its data, each padded to four bytes. initramfs-buffer-format in the
    kernel's documentation."""
    numbers = (number, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, 0, 0, len(name.encode()) + 1, 0)
    header = b"070701" + b"".join(b"%08X" % value for value in numbers) + name.encode() + b"\0"
    return _padded(header) + _padded(entry.data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def unpack(packed: bytes) -> dict[str, bytes]:
    """The files of archives that stand one after the other, by their path in the machine: `/usr/sbin/ovs-vswitchd`."""
    found, at = {}, 0
    while packed[at : at + 6] == b"070701":
        data_length, name_length = (int(packed[at + begin : at + begin + 8], 16) for begin in (54, 94))
        name = packed[at + 110 : at + 110 + name_length - 1].decode()
        data = at + 110 + name_length + -(110 + name_length) % 4
        found[f"/{name}"] = packed[data : data + data_length]
        at = data + data_length + -data_length % 4
    return found
