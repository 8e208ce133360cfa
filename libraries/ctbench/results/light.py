"""Records of a year in memory: without their trials, and what is the same in many of them held once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pydantic_core import to_json

from ctbench.results.environment import DutFacts, Reading
from ctbench.results.record import Record

#: Parts that runs have in common, besides their environment.
_COMMON = ("topology", "profile", "floor", "thresholds", "tags", "pool", "notes")
_TEXTS = ("tool_version", "run_id", "suite", "test")


class Shared(Reading):
    """Reads many records: holds the parts that they have in common once."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: dict[object, Any] = {}

    def light(self, whole: Record) -> Record:
        """The record without its trials, series and rounds, and of the DUT's facts only those that have a name."""
        pairs = [pair.model_copy(update={"ratios": []}) for pair in whole.evidence.pairs]
        evidence = whole.evidence.model_copy(update={"trials": [], "series": [], "pairs": pairs})
        environment = whole.environment.model_copy(update={"dut": self._part("dut", _named(whole.environment.dut))})
        common = {name: self._part(name, getattr(whole, name)) for name in _COMMON}
        texts = {name: self._text(getattr(whole, name)) for name in _TEXTS}
        return whole.model_copy(update={**common, **texts, "evidence": evidence, "environment": environment})

    def _part(self, name: str, part: Any) -> Any:
        return self._parts.setdefault((name, to_json(part)), part) if part else part

    def _text(self, text: str) -> Any:
        return self._parts.setdefault(text, text)


def _named(facts: DutFacts) -> DutFacts:
    names = facts.model_fields_set & set(DutFacts.model_fields)
    return DutFacts.model_construct(names, **{name: getattr(facts, name) for name in names})


@contextmanager
def no_collection() -> Iterator[None]:
    """Without looking for cycles, of which reading makes none: each look goes through all records read so far."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
