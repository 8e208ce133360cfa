"""The software generator's kernel with AddressSanitizer and UndefinedBehaviorSanitizer: they find nothing."""

import subprocess
import sys
from pathlib import Path

import pytest
import sanitized

from ctbench.base.paths import LIBRARIES, ROOT

pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]

#: Tests of each kind of load: on the wire, over a cable, of frames that are damaged, and of several threads.
SANITIZED = {
    "test_generator_frames.py": "test",
    "test_generator_connections.py": "server-3-expected4 or reset-3 or held_connections or addresses_behind",
    "test_generator_packets.py": "lossless_wire",
    "test_generator_closed_loop.py": "never_overflows or has_its_turn",
    "test_generator_hold.py": "what_is_open",
    "test_generator_backlogs.py": "shown_at_once or servers_answer",
    "test_generator_threads.py": "mixed or half_open or ends_all",
}


def test_sanitizers_find_nothing() -> None:
    sanitized.find_nothing(SANITIZED)


def test_sanitizers_see_what_is_wrong(tmp_path: Path) -> None:
    """An access behind the end of a struct, in a library compiled as the kernel is there."""
    source = tmp_path / "wrong.c"
    source.write_text("int beyond(int *of_one, int place) { return of_one[place]; }")
    asked = f"""
import ctypes, pathlib, sanitized
from ctgen.library import built
beyond = ctypes.CDLL(str(built([pathlib.Path({str(source)!r})], sanitized.FLAGS))).beyond
one = (ctypes.c_int * 8)()
print(beyond(one, 7), flush=True)
beyond(one, 8)
"""
    environment = sanitized.environment() | {"PYTHONPATH": f"{LIBRARIES}:{ROOT / 'tests'}"}
    done = subprocess.run([sys.executable, "-c", asked], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and done.stdout == "0\n"
    assert "heap-buffer-overflow" in done.stderr
