"""A random order in which every number of a range comes once before any comes again.

A full-period generator modulo a power of two (Knuth, volume 2, theorem A), scrambled by a bijection; numbers beyond
the range are passed over by the caller.
"""

from numba import njit


def mask_and_shift(count: int) -> tuple[int, int]:
    """What `next_state` and `scrambled` need for numbers below `count`."""
    bits = max(4, (count - 1).bit_length())
    return (1 << bits) - 1, (bits + 1) // 2


@njit(nogil=True, forceinline=True)
def next_state(state, mask):  # type: ignore[no-untyped-def]
    """The next state of the generator."""
    return (state * 1664525 + 1013904223) & mask


@njit(nogil=True, forceinline=True)
def scrambled(state, mask, shift):  # type: ignore[no-untyped-def]
    """The number that a state stands for."""
    x = state ^ (state >> shift)
    x = (x * 0x2C1B3C6D) & mask
    return x ^ (x >> shift)
