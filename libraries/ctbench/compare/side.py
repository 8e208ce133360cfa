"""One side of a comparison: the runs that it is made of, and the samples of each test in them."""

import os
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.plain_text import brief
from ctbench.base.regular_file import named_folder
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.results.comparison import Samples, Side
from ctbench.results.metrics import METRICS, RATES, SATURATION_OF, Metric
from ctbench.results.record import Record
from ctbench.results.statistics import spread
from ctbench.results.store import Broken, Stored, read_stored

#: A test is the same on either side when these are: the topology, the name of the profile that was offered, and the
#: metric that is compared.
TestKey = tuple[Topology, str, str]


@dataclass(frozen=True)
class Runs:
    """The records of one side."""

    #: As the user named it.
    name: str
    folders: tuple[Path, ...]
    stored: tuple[Stored, ...]
    broken: tuple[Broken, ...]
    #: A sentence for each run that was there and does not count.
    left_out: tuple[str, ...] = ()

    @property
    def records(self) -> tuple[Record, ...]:
        """All records, those of the generator's ceiling too."""
        return tuple(each.record for each in self.stored)

    def tests(self) -> dict[TestKey, list[Stored]]:
        """The records of each test, in the order of the first run; the generator without a DUT is no test of one."""
        found: dict[TestKey, list[Stored]] = defaultdict(list)
        for each in self.stored:
            if each.record.topology.datapath != CABLE.datapath:
                found[each.record.topology, each.record.profile.name, compared_metric(each.record).name].append(each)
        return found

    def runs(self) -> dict[str, list[Stored]]:
        """The records of each run by its id, in the order of their start."""
        found: dict[str, list[Stored]] = defaultdict(list)
        for each in self.stored:
            found[each.record.run_id].append(each)
        return found

    def as_side(self) -> Side:
        """What a comparison says of this side."""
        environments = [record.environment for record in self.records]
        return Side(
            name=self.name,
            folders=[str(folder) for folder in self.folders],
            records=len(self.stored),
            versions=_each(environment.dut.product_details for environment in environments),
            testbeds=_each(environment.testbed.name for environment in environments),
            machines=_each(environment.machine.cpu_model for environment in environments),
            kernels=_each(environment.machine.kernel for environment in environments),
            campaigns=_each(record.campaign.name for record in self.records),
            broken=[each.reason for each in self.broken],
        )


def read_runs(name: str) -> Runs:
    """The runs that `name` stands for: folders separated by commas, each that of a run or one with runs in it.

    Raises `ConfigError` where there is no record.
    """
    folders = [folder for part in name.split(",") for folder in _run_folders(named_folder(part))]
    stored, broken = read_stored(*folders)
    if not stored:
        raise ConfigError(
            f"{brief(name, 300)}: has no records.\n  Expected the folder of a run, such as results/latest, a "
            "folder with runs in it, or several with commas between them."
        )
    return Runs(name, tuple(folders), tuple(stored), tuple(broken))


def require_runs(name: str) -> None:
    """Raise `ConfigError` where one of the folders that `name` stands for holds no run. Nothing is read yet."""
    for part in name.split(","):
        known = bool(part) and os.path.isdir(part)  # noqa: PTH112 # pathlib's raises where a name is too long
        if not known or not _run_folders(Path(part)):
            what = f"{part}: has no records" if part else f'"{name}": a folder has no name'
            raise ConfigError(
                f"{what}{'' if known or not part else ', it is not a folder'}.\n  Expected the folder of a run, such "
                "as results/latest, a folder with runs in it, or several with commas between them."
            )


def _run_folders(folder: Path) -> list[Path]:
    if (folder / "records").is_dir():
        return [folder]
    return sorted(path.parent for path in folder.glob("*/records") if path.is_dir())


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


def _each(values: Iterable[str]) -> list[str]:
    """Each value once, in order of appearance; what is not known is left out."""
    return list(dict.fromkeys(value for value in values if value))
