"""Memory access that numba does not offer: plain and ordered loads and stores, byte swap, prefetch, cycle counter.

All values and addresses are int64 (numba turns int64 with uint64 into float64). Loads extend with zeros. Loads and
stores of the memif indices are ordered as the protocol needs: acquire on load, release on store. On x86-64, the only
processor the generator runs on, both are plain instructions.
"""

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ctbench.traffic.software import cache_directory

# All that is compiled needs this module, so it is read before anything is looked for there.
numba.config.CACHE_DIR = str(cache_directory())
_WORD = ir.IntType(64)


def _of_one(build: Callable[[Any, Any], Any]) -> Any:
    """An intrinsic `f(int64) -> int64`. `build` gets the builder of LLVM's code and the argument, and says what is
    returned."""

    def intrinsic_of_one(_typingctx: Any, argument: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return build(builder, args[0])

        return types.int64(types.int64), codegen

    return intrinsic(intrinsic_of_one)


def _load(bits: int, ordering: str = "") -> Any:
    """An intrinsic `f(address) -> int64` that reads `bits` bits."""

    def load(builder: Any, address: Any) -> Any:
        pointer = builder.inttoptr(address, ir.IntType(bits).as_pointer())
        if ordering:
            value = builder.load_atomic(pointer, ordering=ordering, align=bits // 8)
        else:
            value = builder.load(pointer, align=1)
        return builder.zext(value, _WORD) if bits < 64 else value

    return _of_one(load)


def _store(bits: int, ordering: str = "") -> Any:
    """An intrinsic `f(address, value)` that writes the low `bits` bits."""

    def store(_typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], ir.IntType(bits).as_pointer())
            value = builder.trunc(args[1], ir.IntType(bits)) if bits < 64 else args[1]
            if ordering:
                builder.store_atomic(value, pointer, ordering=ordering, align=bits // 8)
            else:
                builder.store(value, pointer, align=1)

        return types.void(types.int64, types.int64), codegen

    return intrinsic(store)


load8: Callable[[int], int] = _load(8)
load16: Callable[[int], int] = _load(16)
load32: Callable[[int], int] = _load(32)
load64: Callable[[int], int] = _load(64)
load16_acquire: Callable[[int], int] = _load(16, "acquire")
load32_acquire: Callable[[int], int] = _load(32, "acquire")
store8: Callable[[int, int], None] = _store(8)
store16: Callable[[int, int], None] = _store(16)
store32: Callable[[int, int], None] = _store(32)
store64: Callable[[int, int], None] = _store(64)
store16_release: Callable[[int, int], None] = _store(16, "release")
store32_release: Callable[[int, int], None] = _store(32, "release")


def _bswap(bits: int) -> Any:
    return _of_one(lambda builder, value: builder.zext(builder.bswap(builder.trunc(value, ir.IntType(bits))), _WORD))


#: Network byte order of the low 32 (16) bits, and back.
swap32: Callable[[int], int] = _bswap(32)
swap16: Callable[[int], int] = _bswap(16)


def _prefetch(builder: Any, address: Any) -> Any:
    i32, pointer = ir.IntType(32), ir.IntType(8).as_pointer()
    signature = ir.FunctionType(ir.VoidType(), [pointer, i32, i32, i32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], signature)
    builder.call(function, [builder.inttoptr(address, pointer), i32(0), i32(3), i32(1)])
    return address


#: Bring the cache line at this address close, without waiting for it. Returns the address.
prefetch: Callable[[int], int] = _of_one(_prefetch)
#: The processor's time stamp counter (`rdtsc`).
cycles: Callable[[], int] = types.ExternalFunction("llvm.readcyclecounter", types.int64())
