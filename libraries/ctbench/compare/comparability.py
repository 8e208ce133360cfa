"""Whether two sides may be compared: what differs between them apart from the build, in sentences."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from ctbench.base.units import quoted
from ctbench.compare.side import Runs
from ctbench.dut.registry import KINDS
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.store import Stored

#: Facts that change from minute to minute and say nothing about the machine.
_VOLATILE = ("free",)
_SHOWN = 3


def differences(base: Runs, candidate: Runs) -> list[str]:
    """What differs that ought not to, one sentence each: testbed file (but which Open vSwitch), machine, memory,
    profiles, campaign, limits. Within one side counts as well as between the two."""
    records = [*base.records, *candidate.records]
    found = [
        *_differing("The testbed file", records, _testbed),
        *_differing("The machine", records, lambda record: {"": _dump(record.environment.machine)}),
        *_differing("The machine of the DUT", records, lambda record: _of_dut(record, record.environment.dut.machine)),
        *_differing("The memory", records, lambda record: _of_dut(record, record.environment.dut.memory)),
        *_differing("The campaign", records, lambda record: {"": _dump(record.campaign, "description")}),
        *_differing("Profile", records, lambda record: {record.profile.name: _dump(record.profile)}),
        *_differing("The limits of", records, _limits),
    ]
    return list(dict.fromkeys(found))


def only_alike(base: Runs, candidate: Runs) -> Runs:
    """The base without its runs that are not like the candidate. Where none is like it, all of them: then there is
    nothing to compare with, and `differences` says why."""
    kept: list[Stored] = []
    left_out: list[str] = []
    for run_id, stored in base.runs().items():
        found = differences(Runs(base.name, (), tuple(stored), ()), candidate)
        if found:
            left_out.append(f"Run {run_id} of {base.name} was left out: {found[0]}")
        else:
            kept += stored
    if not kept:
        return base
    folders = tuple(folder for folder in base.folders if any(each.path.is_relative_to(folder) for each in kept))
    return replace(base, folders=folders, stored=tuple(kept), left_out=tuple(left_out))


def notes(base: Runs, candidate: Runs) -> list[str]:
    """What a reader has to know though it forbids nothing, one sentence each."""
    found = versions_note(base, candidate)
    for side in (base, candidate):
        found += side.left_out
        if len(side.runs()) == 1:
            found.append(
                f"{side.name} is one run: what differs from one start of the DUT to the next is not in its samples."
            )
        if side.broken:
            found.append(f"{len(side.broken)} files of {side.name} are no records and were left out.")
    return found


def versions_note(base: Runs, candidate: Runs) -> list[str]:
    """A sentence where the sides were measured by different versions of this suite."""
    tools = sorted({record.tool_version for record in (*base.records, *candidate.records)})
    return [f"The sides were measured by different versions of this suite ({', '.join(tools)})."] * (len(tools) > 1)


def _differing(
    what: str, records: list[Record], facts_of: Callable[[Record], dict[str, dict[str, Any]]]
) -> Iterator[str]:
    """A sentence for each name whose facts are not the same in all records, with the keys that differ."""
    first: dict[str, dict[str, str]] = {}
    for record in records:
        for name, facts in facts_of(record).items():
            known, flat = first.setdefault(name, dict(leaves(facts))), dict(leaves(facts))
            keys = [key for key in dict.fromkeys([*known, *flat]) if known.get(key) != flat.get(key)]
            if keys:
                shown = ", ".join(
                    f"{key} ({short(known.get(key))} and {short(flat.get(key))})" for key in keys[:_SHOWN]
                )
                more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
                yield f"{what}{' ' if name else ''}{name} is not the same in all runs: {shown}{more}."


def _testbed(record: Record) -> dict[str, dict[str, Any]]:
    """The testbed file without which build it names: that is what the sides differ in."""
    testbed = record.environment.testbed
    duts = [_without_build(dut) for dut in testbed.duts]
    return {"": _dump(testbed, "description") | {"duts": duts}}


def _of_dut(record: Record, facts: BaseModel | None) -> dict[str, dict[str, Any]]:
    """Facts of the DUT by its kind; none where this kind has none."""
    return {record.topology.datapath: _dump(facts)} if facts else {}


def _limits(record: Record) -> dict[str, dict[str, Any]]:
    """What a trial has to keep to be good, so that what is measured depends on it."""
    conditions = {each.metric: each.written for each in record.thresholds if METRICS[each.metric].role == "condition"}
    return {f"{record.floor.key} with {record.profile.name}": conditions}


def _dump(facts: BaseModel, *without: str) -> dict[str, Any]:
    return facts.model_dump(mode="json", exclude=set(without), fallback=str)


def _without_build(dut: dict[str, Any]) -> dict[str, Any]:
    """A DUT of a testbed file without which of its builds is measured."""
    kind = KINDS.get(str(dut.get("type")))
    key = kind.builds.key if kind and kind.builds else None
    return {name: value for name, value in dut.items() if name != key}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of nested facts by their path, in the words of JSON, without what is volatile. What is empty is no
    difference to what is missing: an earlier version of this suite did not know the key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key not in _VOLATILE:
                yield from leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    elif value not in (None, [], ()):
        yield path, json.dumps(value, default=str)


def short(value: str | None) -> str:
    """A leaf for a sentence."""
    return "nothing" if value is None else quoted(json.loads(value)) if len(value) < 60 else f"{value[:57]}..."
