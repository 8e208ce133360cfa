"""Parts of the software generator's kernel that tests look at by themselves: kernel_parts.c."""

import ctypes
from functools import cache
from pathlib import Path
from types import SimpleNamespace

from ctgen import layout as lay
from ctgen.library import FLAGS, built

_DOUBLE, _LONG, _WORD, _INT = ctypes.c_double, ctypes.c_int64, ctypes.c_uint64, ctypes.c_int
_RUN, _CONNECTION = ctypes.POINTER(lay.Run), ctypes.POINTER(lay.Connection)
#: Of each function what it returns, and takes.
_TYPES = {
    "next_allowed": (_DOUBLE, _DOUBLE, _DOUBLE, _DOUBLE, _DOUBLE),
    "next_state": (_WORD, _WORD, _WORD),
    "scrambled": (_WORD, _WORD, _WORD, _WORD),
    "bin_of": (_INT, ctypes.c_uint32),
    "looks_due": (_LONG, ctypes.POINTER(_LONG), _LONG, _LONG),
    "message_sent": (None, _CONNECTION, _LONG),
    "message_taken": (None, _RUN, _CONNECTION, _INT, _LONG),
    "fail_for_want_of_a_reply": (None, _RUN, _CONNECTION),
}


@cache
def kernel_parts() -> SimpleNamespace:
    """The functions by name."""
    library = ctypes.CDLL(str(built([Path(__file__).with_suffix(".c")], FLAGS)))
    parts = {}
    for name, (returned, *taken) in _TYPES.items():
        part = library[f"part_{name}"]
        part.restype, part.argtypes = returned, taken
        parts[name] = part
    return SimpleNamespace(**parts)
