"""The two sides of a comparison: the runs that each is made of, the samples of each test in them, and what differs
between the sides apart from what is compared."""

import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from ctbench.base.errors import ConfigError
from ctbench.base.files import named_folder
from ctbench.base.text import brief
from ctbench.base.units import quoted
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.report.labels import once
from ctbench.results.comparison import ComparedSide, Samples
from ctbench.results.metrics import METRICS, RATES, SATURATION_OF, Metric
from ctbench.results.record import Record
from ctbench.results.statistics import spread
from ctbench.results.store import Broken, Stored, read_stored

Role = Literal["base", "candidate"]
ROLES: tuple[Role, Role] = ("base", "candidate")

#: A test is the same on either side when these are: the topology, the name of the profile that was offered, and the
#: metric that is compared.
TestKey = tuple[Topology, str, str]


@dataclass(frozen=True)
class Runs:
    """The records of one side."""

    #: As the user named it.
    name: str
    folders: Sequence[Path]
    stored: Sequence[Stored]
    broken: Sequence[Broken]
    #: A sentence for each run that was there and does not count.
    left_out: Sequence[str] = ()

    @property
    def records(self) -> list[Record]:
        """All records, those of the generator's ceiling too."""
        return [each.record for each in self.stored]

    @property
    def broken_note(self) -> list[str]:
        """A sentence where files were left out."""
        said = f"{len(self.broken)} files of {self.name} are not records and were left out."
        return [said] if self.broken else []

    def runs(self) -> dict[str, list[Stored]]:
        """The records of each run by its id, in the order of their start."""
        found: dict[str, list[Stored]] = defaultdict(list)
        for each in self.stored:
            found[each.record.run_id].append(each)
        return found

    def as_side(self) -> ComparedSide:
        """What a comparison says of this side."""
        environments = [record.environment for record in self.records]
        return ComparedSide(
            name=self.name,
            folders=[str(folder) for folder in self.folders],
            records=len(self.stored),
            versions=once(environment.dut.product_details for environment in environments),
            testbeds=once(environment.testbed.name for environment in environments),
            machines=once(environment.machine.cpu_model for environment in environments),
            kernels=once(environment.machine.kernel for environment in environments),
            campaigns=once(record.campaign.name for record in self.records),
            broken=[each.reason for each in self.broken],
        )


def by_test(stored: Sequence[Stored]) -> dict[TestKey, list[Stored]]:
    """The records of each test, in their order; the generator without a DUT is not a test of one."""
    found: dict[TestKey, list[Stored]] = defaultdict(list)
    for each in stored:
        if (record := each.record).topology.datapath != CABLE.datapath:
            found[record.topology, record.profile.name, compared_metric(record).name].append(each)
    return found


def read_runs(name: str) -> Runs:
    """The runs that `name` stands for: folders separated by commas, each that of a run or one with runs in it.

    Raises `ConfigError` where there is no record.
    """
    folders = [folder for part in name.split(",") for folder in _run_folders(part)]
    runs = Runs(name, folders, *read_stored(*folders))
    if not runs.stored:
        raise _no_runs(name)
    return runs


def _run_folders(name: str) -> list[Path]:
    folder = named_folder(name)
    if not name or not folder.is_dir():
        raise _no_runs(name, ", it is not a folder")
    if (folder / "records").is_dir():
        return [folder]
    if not (runs := sorted(path.parent for path in folder.glob("*/records") if path.is_dir())):
        raise _no_runs(name)
    return runs


def _no_runs(name: str, why: str = "") -> ConfigError:
    return ConfigError(
        f"{brief(name, 300) or 'a folder without a name'}: has no records{why}.\n  Expected the folder of a run, such "
        "as results/latest, a folder with runs in it, or several with commas between them."
    )


def samples(stored: Sequence[Stored]) -> Samples | None:
    """The samples of one test on one side; None where nothing was measured.

    A sample is a run: repetitions in the same run resemble each other more than those of another one, in which the DUT
    was started again. Where there is one run only, its repetitions have to do.
    """
    runs: dict[str, list[float]] = defaultdict(list)
    valid: list[Stored] = []
    for each in stored:
        if values := _compared_values(each.record):
            valid.append(each)
            runs[each.record.run_id] += values
    if not valid:
        return None
    values = [statistics.median(found) for found in runs.values()] if len(runs) > 1 else next(iter(runs.values()))
    return Samples(
        values=values,
        median=statistics.median(values),
        minimum=min(values),
        maximum=max(values),
        spread=spread(values),
        censored=any(each.record.limited_by == "range" for each in valid),
        run_ids=list(runs),
        records=[str(each.path) for each in valid],
    )


def without(stored: Sequence[Stored]) -> str:
    """Why a test has no samples: what its last record says, in a sentence without its full stop."""
    if not stored:
        return "there is no record of it"
    last = stored[-1].record
    if last.verdict == "not measured":
        return f"not measured: {last.verdict_reason.rstrip('.')}"
    if last.limited_by == "generator":
        return "the traffic generator was the limit, so what the DUT can do remains unknown"
    if last.limited_by == "floor":
        return f"campaign {last.campaign.name} tries the floor and nothing else, so there is no figure to compare"
    return f"its record has no figure of {METRICS[last.metric].title}"


def compared_metric(record: Record) -> Metric:
    """What of a record is compared: what was looked for. Where that is a rate, and the capacity one of a few shares of
    the rate that a closed loop showed (campaign `quick`), that rate, which is the finer figure."""
    rate = SATURATION_OF[record.profile.kind]
    finer = record.metric in RATES and record.campaign.search == "saturation" and rate.name in record.figures
    return rate if finer else METRICS[record.metric]


def _compared_values(record: Record) -> list[float]:
    """What a record has to compare with: nothing where something else than the DUT decided."""
    metric = compared_metric(record)
    if metric.name != record.metric:
        return [record.figures[metric.name].value]
    usable = record.verdict != "not measured" and record.limited_by in ("dut", "range")
    return list(record.result.repetitions) if usable and record.result else []


def is_chosen(record: Record, only: Sequence[str]) -> bool:
    """Whether a test has one of these texts in its names; where there are none, always."""
    names = (record.suite, record.test, record.topology.key, record.profile.name, compared_metric(record).name)
    words = " ".join(names).lower()
    return not only or any(text.lower() in words for text in only)


def names_of(record: Record) -> dict[str, str]:
    """What a comparison calls a test."""
    metric = compared_metric(record)
    return {
        "suite": record.suite,
        "test": record.test,
        "topology": record.topology.key,
        "profile": record.profile.name,
        "metric": metric.name,
        "unit": metric.unit.name,
    }


#: Facts that change from minute to minute and say nothing about the machine.
_VOLATILE = ("free",)
_SHOWN = 3


def differences(base: Runs, candidate: Runs) -> list[str]:
    """What differs that ought not to, one sentence each: testbed file (but which Open vSwitch), machine, memory,
    profiles, campaign, limits. Within one side counts as well as between the two."""
    first: dict[str, dict[str, str]] = {}
    found: dict[str, dict[str, None]] = {}
    for record in (*base.records, *candidate.records):
        for what, facts in _facts(record):
            flat = dict(leaves(facts))
            known = first.setdefault(what, flat)
            keys = [key for key in dict.fromkeys([*known, *flat]) if known.get(key) != flat.get(key)]
            shown = ", ".join(f"{key} ({short(known.get(key))} and {short(flat.get(key))})" for key in keys[:_SHOWN])
            more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
            said = found.setdefault(what, {})
            if keys:
                said[f"{what} is not the same in all runs: {shown}{more}."] = None
    return [sentence for said in found.values() for sentence in said]


def _facts(record: Record) -> Iterator[tuple[str, dict[str, Any]]]:
    """What has to be the same in all runs, by how a sentence names it."""
    around, kind, profile = record.environment, record.topology.datapath, record.profile
    yield "The testbed file", _dump(around.testbed, "description") | {"duts": list(map(_dut, around.testbed.duts))}
    yield "The machine", _dump(around.machine)
    for what, facts in (("The machine of the DUT", around.dut.machine), ("The memory", around.dut.memory)):
        if facts:
            yield f"{what} {kind}", _dump(facts)
    yield "The campaign", _dump(record.campaign, "description", "starts")  # which are of a candidate alone
    yield f"Profile {profile.name}", _dump(profile)
    # What a trial has to keep to be good: what is measured depends on it.
    limits = {each.metric: each.written for each in record.thresholds if METRICS[each.metric].role == "condition"}
    yield f"The limits of {record.test} ({record.floor.key} with {profile.name})", limits


def _dump(facts: BaseModel, *without: str) -> dict[str, Any]:
    return facts.model_dump(mode="json", exclude=set(without), fallback=str)


def _dut(dut: dict[str, Any]) -> dict[str, Any]:
    """A DUT of a testbed file without which of its builds is measured: that is what the sides differ in."""
    kind = KINDS.get(str(dut.get("type")))
    key = kind.builds.key if kind and kind.builds else None
    return {name: value for name, value in dut.items() if name != key}


def only_alike(base: Runs, candidate: Runs) -> Runs:
    """The base without its runs that are not like the candidate. Where none is like it, all of them: then there is
    nothing to compare with, and `differences` says why."""
    kept: list[Stored] = []
    left_out: list[str] = []
    for run_id, stored in base.runs().items():
        found = differences(replace(base, stored=stored), candidate)
        if found:
            left_out.append(f"Run {run_id} of {base.name} was left out: {found[0]}")
        else:
            kept += stored
    if not kept:
        return base
    folders = [folder for folder in base.folders if any(each.path.is_relative_to(folder) for each in kept)]
    return replace(base, folders=folders, stored=kept, left_out=left_out)


def notes(base: Runs, candidate: Runs) -> list[str]:
    """What a reader has to know though it forbids nothing, one sentence each."""
    found = versions_note(base, candidate)
    for side in (base, candidate):
        found += side.left_out
        if len(side.runs()) == 1:
            found.append(
                f"{side.name} is one run: what differs from one start of the DUT to the next is not in its samples."
            )
        found += side.broken_note
    return found


def versions_note(base: Runs, candidate: Runs) -> list[str]:
    """A sentence where the sides were measured by different versions of this suite."""
    tools = sorted({record.tool_version for record in (*base.records, *candidate.records)})
    return [f"The sides were measured by different versions of this suite ({', '.join(tools)})."] * (len(tools) > 1)


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
