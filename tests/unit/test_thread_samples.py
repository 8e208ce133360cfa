"""Samples of a real thread, and the functions of real programs: each way that this machine has, and stripped files."""

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctbench.base.errors import TestbedError
from ctbench.dut.ovs import threads
from ctbench.dut.ovs.elf import Program
from ctbench.hosts import thread_samples
from ctbench.hosts.local import LocalHost

#: Locks and unlocks a mutex of the C library without end, and says so when it hears a signal.
SPINS = """
import ctypes, os, signal
signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b"heard\\n"))
libc = ctypes.CDLL(None)
mutex = ctypes.create_string_buffer(64)
lock, unlock = libc.pthread_mutex_lock, libc.pthread_mutex_unlock
print("ready", flush=True)
while True:
    lock(mutex); unlock(mutex)
"""


@pytest.fixture
def spinning() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-I", "-S", "-c", SPINS], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        yield child
        child.kill()


def sampling(pid: int) -> list[str]:
    source = Path(thread_samples.__file__).read_text()
    return [sys.executable, "-I", "-S", "-c", source, str(pid), str(pid), "0.4", "199"]


def test_a_thread_is_sampled_and_its_functions_have_names(spinning: "subprocess.Popen[bytes]") -> None:
    functions = Counter[str]()
    for _ in range(20):  # a thread that rarely gets a CPU is rarely seen, and in a tenth of its samples with its mutex
        said = json.loads(LocalHost().run(sampling(spinning.pid)).stdout)
        found = threads._by_function(LocalHost(), said)
        assert found.total() == sum(times for _, times in said["addresses"])
        functions += found
        if functions.total() > 5 and any("pthread_mutex" in name for name in functions):
            break
    assert any("pthread_mutex" in name for name in functions), functions
    child = Path(f"/proc/{spinning.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert child in "RS"  # it goes on


def test_a_signal_that_comes_meanwhile_is_handed_on(spinning: "subprocess.Popen[bytes]") -> None:
    with subprocess.Popen(sampling(spinning.pid), stdout=subprocess.PIPE) as sampler:
        for _ in range(20):
            time.sleep(0.01)
            spinning.send_signal(signal.SIGUSR1)
        assert sampler.wait(60) == 0
    assert spinning.stdout and spinning.stdout.readline() == b"heard\n" and spinning.poll() is None


def test_a_library_names_its_parts_and_what_is_no_program_or_thread_is_none(tmp_path: Path) -> None:
    path = next(
        Path(line.split()[-1])
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "libc.so.6" in line or "libc-" in line
    )
    library = Program(path)
    assert len(library.build_id) == 40
    names = {name: begin for begin, _, name in library._functions}
    begin, address, _ = next(each for each in library._loaded if each[1] <= names["pthread_mutex_lock"] < sum(each[1:]))
    assert library.place(names["pthread_mutex_lock"] - address + begin) == "pthread_mutex_lock"
    assert "pthread_mutex_unlock (a part)" in library._parts.values()
    for data in (b"", b"#!/bin/sh\n", b"\x7fELF\x01"):
        (tmp_path / "other").write_bytes(data)
        assert (Program(tmp_path / "other").place(0), Program(tmp_path / "other").build_id) == ("", "")
    with pytest.raises(TestbedError):
        LocalHost().run(sampling(4194305))
