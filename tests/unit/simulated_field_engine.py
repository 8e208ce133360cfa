"""TRex' field engine as its sources have it (trex_stl_stream_vm.h), in Python: what packets would a program send?"""

import struct
from collections.abc import Iterator
from typing import Any

from packets import internet_checksum

Instruction = dict[str, Any]


class _Variable:
    """A variable that counts or walks through a list; before the first packet it stands one step before its start."""

    def __init__(self, instruction: Instruction) -> None:
        self.size = instruction["size"]
        self.next = instruction.get("next_var")
        self._list = instruction.get("value_list")
        self._step = instruction["step"] if instruction["op"] == "inc" else -instruction["step"]
        self._least = 0 if self._list else instruction["min_value"]
        most = len(self._list) - 1 if self._list else instruction["max_value"]
        self._range = most - self._least + 1
        assert self._range % abs(self._step) == 0, "TRex would make the range longer"
        begin = 0 if self._list else instruction["init_value"]
        self._place = (begin - self._least - self._step) % self._range

    @property
    def value(self) -> int:
        return int(self._list[self._place]) if self._list else self._least + self._place

    def advance(self) -> bool:
        """Take a step; whether it began anew."""
        before, self._place = self._place, (self._place + self._step) % self._range
        return self._place < before if self._step > 0 else self._place > before


def packets_of(frame: bytes, program: list[Instruction]) -> Iterator[bytes]:
    """The frames that TRex sends of a template and a program, for ever."""
    declared = [step for step in program if step["do"] == "STLVmFlowVar"]
    variables = {step["name"]: _Variable(step) for step in declared}
    followers = {variable.next for variable in variables.values() if variable.next}
    for name in followers:  # moves for the first time when the one before it has begun
        variables[name].advance()
    first = True
    while True:
        for name, variable in variables.items():
            if name in followers:
                continue
            began_anew = variable.advance()
            if began_anew and variable.next and not first:
                variables[variable.next].advance()
        first = False
        sent = bytearray(frame)
        for step in program:
            _apply(step, variables, sent)
        yield bytes(sent)


def _apply(step: Instruction, variables: dict[str, _Variable], sent: bytearray) -> None:
    if step["do"] == "STLVmWrFlowVar":
        variable = variables[step["fv_name"]]
        at = step["pkt_offset"]
        sent[at : at + variable.size] = variable.value.to_bytes(variable.size, "big")
    elif step["do"] == "STLVmWrMaskFlowVar":
        value = (variables[step["fv_name"]].value + step["add_value"]) & 0xFFFFFFFF
        value = value << step["shift"] if step["shift"] > 0 else value >> -step["shift"]
        at, size, mask = step["pkt_offset"], step["pkt_cast_size"], step["mask"]
        was = int.from_bytes(sent[at : at + size], "big")
        sent[at : at + size] = ((was & ~mask | value & mask) & (1 << 8 * size) - 1).to_bytes(size, "big")
    elif step["do"] == "STLVmFixIpv4":
        at = step["offset"]
        struct.pack_into("!H", sent, at + 10, 0)
        struct.pack_into("!H", sent, at + 10, internet_checksum(bytes(sent[at : at + 20])))
