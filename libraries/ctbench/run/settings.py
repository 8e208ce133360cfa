"""The settings of a run: the testbed, the campaign, the floors; and the check, before the first trial, that the names
in these files and in rows of suites exist."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ctbench.base import paths
from ctbench.base.errors import ConfigError, MissingResource, NoFloorYet, NoPromise
from ctbench.base.units import did_you_mean, quoted
from ctbench.base.yaml_files import YamlModel, load, names
from ctbench.dut.cable import CABLE
from ctbench.dut.registry import KINDS, abilities, check_kind, check_set_up
from ctbench.dut.topology import Topology
from ctbench.measure.campaign import Campaign
from ctbench.measure.procedure import Procedure, Promise
from ctbench.results.floor import Floor, build_in_words
from ctbench.run.measurement import plan
from ctbench.sla.floors import FloorEntry, Floors
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.profiles import Profile, load_profile

#: The variables of a run, with their defaults, in the order in which the keyword `Open Testbed` takes them.
VARIABLES = {
    "TESTBED": "local",
    "CAMPAIGN": "quick",
    "SLA": "local",
    "BASE": "",
    "CANDIDATE": "",
    "ALL": "",
}


#: What a row promises in the place of the SLA: an entry as an SLA file has it.
OwnEntry = Mapping[str, Any]


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run: the testbed, the campaign, the floors."""

    testbed: TestbedConfig
    campaign: Campaign
    floors: Floors
    #: The installation that is tested in place of the testbed file's; empty for an ordinary run.
    candidate: str = ""
    #: Whether rows of DUTs that do not come from the candidate are measured too.
    all_rows: bool = False

    @classmethod
    def load(
        cls,
        testbed: str = "local",
        campaign: str = "quick",
        sla: str = "local",
        base: str = "",
        candidate: str = "",
        all_rows: str = "",
    ) -> "RunSettings":
        """Read the three files, by name below variables/ or by path. `base`: the build that the `candidate` is compared
        with; `all_rows`: also measure rows of other DUTs. Raises `ConfigError`, which says what is wrong with one."""
        floors = load("sla", sla, Floors)
        plan = load("campaigns", campaign, Campaign)
        if base and not candidate:
            raise ConfigError("BASE is what a candidate is compared with.\n  Expected -v CANDIDATE:PREFIX with it.")
        read = load("testbeds", testbed, TestbedConfig)
        if not candidate:
            return cls(read, plan, floors)
        floors = floors.compared_with(_prefix(base) if base else "")
        assert floors.of_build, "it was added"
        tested = _prefix(candidate)
        # The distribution's is in /usr.
        both = ["/usr" if each == "distribution" else each for each in (tested, floors.of_build.base)]
        if len(set(map(os.path.realpath, both))) == 1:
            # As they were given: packages are unpacked below a folder that users do not know.
            theirs = quoted(base) if base else build_in_words(floors.of_build.base)
            raise ConfigError(
                f"CANDIDATE: {quoted(candidate)} is the same build as its base, {theirs}.\n"
                "  Expected another build, or another -v BASE:PREFIX."
            )
        read = read.with_build(tested)
        read.check_build(floors.of_build.base)
        return cls(read, plan, floors, candidate=tested, all_rows=bool(all_rows))

    def promising(self, topology: Topology, profile: Profile, own: OwnEntry) -> "RunSettings":
        """Return these settings for a row that has its own promise."""
        floors = self.floors.promised_by_row(topology, profile, own)
        if "ratio" in own:
            _check_compared("the row", Topology.parse(own["ratio"]["to"]), "ratio")
        return replace(self, floors=floors)

    def promised(self, topology: Topology, profile: Profile, promise: Promise, own: OwnEntry | None) -> str:
        """Return what a row promises, for its documentation, before anything is measured. Raises `ConfigError` as
        `floor`."""
        try:
            floor = self.floor_of_row(topology, profile, promise, own)
        except NoFloorYet:
            return "No floor yet."
        except MissingResource as error:
            return f"Nothing is promised: {error}"
        return f"Promised: {floor}."

    def compares_builds(
        self, topology: Topology, profile: Profile, promise: Promise, own: OwnEntry | None, tags: Collection[str]
    ) -> bool:
        """Return True where a row compares two builds, by what is known before anything is measured. `tags`: those of
        the row that may leave it out."""
        on = self.testbed
        if promise.about != "rate" or not on.rates.judged or on.oversubscribe:
            return False
        try:
            self.require_asked(topology, tags)
            floor = self.floor_of_row(topology, profile, promise, own)
        except (MissingResource, ConfigError):  # said when it is measured
            return False
        return "of_build" in floor.thresholds

    def require_asked(self, topology: Topology, tags: Collection[str]) -> None:
        """Raise `MissingResource` for a row that the campaign or the testbed leaves out by these tags. With a
        candidate, unless all rows are asked for, also for a topology that does not come from the candidate, and for one
        with `zone_policy: first`, which meets a fault of every Open vSwitch since 3.3."""
        if self.candidate and not self.all_rows and self.build(topology) is None:
            raise MissingResource(
                f"A candidate is tested ({self.candidate}), and {topology.datapath} does not come from it: --all "
                "measures every row."
            )
        if self.candidate and not self.all_rows and topology.zone_policy == "first":
            raise MissingResource(
                "A candidate is compared with its base, and what becomes of the first timeout policy of a zone is a "
                "fault of every Open vSwitch since 3.3: --all measures this row too."
            )
        self.campaign.require_time_for(tags)
        self.testbed.require_wanted(tags)

    def build(self, topology: Topology) -> str | None:
        """Return the installation of the topology's DUT that is tested: `distribution`, or a folder; None where it
        comes in one build only, or this testbed has no such DUT."""
        dut = next((each for each in self.testbed.duts if each.type == topology.datapath), None)
        return (KINDS[dut.type].prefix(dut) or None) if dut else None

    def floor_of_row(self, topology: Topology, profile: Profile, promise: Promise, own: OwnEntry | None) -> Floor:
        """Return the floor of a row, by its `own` promise where it has one. Raises as `floor`."""
        judged = self.promising(topology, profile, own) if own else self
        return judged.floor(topology, profile, plan(promise, self.campaign, topology, profile).main)

    def floor(self, topology: Topology, profile: Profile, procedure: Procedure) -> Floor:
        """Return the floor of a test. Raises `MissingResource` where the SLA skips tests that it promises nothing
        of."""
        try:
            floor = self.floors.find(topology, profile, procedure, build=self.build(topology))
        except NoPromise as error:
            if self.floors.others == "refused":
                raise
            raise MissingResource(f"The SLA {self.floors.name} promises nothing of this test.") from error
        floor = floor.counted_in(self.campaign.loss_unit, self.campaign.loss_ratio)
        generator = self.testbed.generator
        return floor.as_far_as_told(generator.unmeasured, generator.title)


def _prefix(given: str) -> str:
    """Return an installation as testbed files have it: `distribution`, or an absolute folder, to which packages are
    unpacked."""
    kind = next(kind for kind in KINDS.values() if kind.builds)
    return given if given == "distribution" else str(kind.unpack(Path(given).absolute()))


#: Where a row is, for a sentence, and the topology and the profile that it names.
Named = tuple[str, Topology, Profile]


def check_references(floors: Floors, campaign: Campaign, rows: Collection[Named] = (), *, whole: bool = True) -> None:
    """Raise `ConfigError` for the first unknown name in the rows, the SLA or the campaign (a kind of DUT, a ruleset, a
    profile), and for a comparison with a topology or a profile that has no such figure. `whole`: all profiles of rows
    are known; else some are in variables, and an unknown profile of the SLA may be one of them.

    A file that is not below variables/ may name rulesets and profiles of rows that this run does not have. Of such an
    SLA the entries of the rows are checked, and the kinds of DUT; `./run check promises` checks all of it."""
    known = {*names("profiles"), *(profile.name for _, _, profile in rows)}
    of_rows = {(topology.key, profile.name) for _, topology, profile in rows}
    for where, topology, _ in rows:
        check_topology(where, topology)
    if whole and not is_own(campaign):
        check_loads(campaign, known)
    for name, substitute in campaign.profiles.items():
        _check_profile(f"{campaign.file}: profiles.{name}", substitute, names("profiles"))
    for key, entries in floors.floors.items():
        topology = Topology.parse(key)
        if is_own(floors):
            _check_kind(f"{floors.file}: {key}", topology)
        else:
            check_topology(f"{floors.file}: {key}", topology)
        for profile, entry in entries.items():
            where = f"{floors.file}: {key}.{profile}"
            if whole and not is_own(floors):
                _check_profile(where, profile, known)
            if not is_own(floors) or (key, profile) in of_rows:
                check_comparisons(where, profile, entry)


def is_own(file: YamlModel) -> bool:
    """True for a team's own file, which is not below variables/."""
    return file.path is not None and not file.path.is_relative_to(paths.VARIABLES)


def check_loads(campaign: Campaign, known: Collection[str]) -> None:
    """Raise `ConfigError` for the first load of a campaign whose profile is not `known`."""
    for name in campaign.loads:
        if name not in ("connections", "packets"):
            _check_profile(f"{campaign.file}: loads.{name}", name, known)


def check_comparisons(where: str, profile: str, entry: FloorEntry) -> None:
    """Raise `ConfigError` where an entry of an SLA compares with what is unknown, or has no such figure. `where`: file,
    topology and `profile` of the entry."""
    for name, promised in (("ratio", entry.ratio), ("cost", entry.cost)):
        if promised:
            _check_compared(f"{where}.{name}", Topology.parse(promised.to), name)
    if entry.ratio and (other := entry.ratio.profile):
        _check_profile(f"{where}.ratio.profile", other, names("profiles"))
        kinds = [load_profile(each).kind for each in (profile, other) if each in names("profiles")]
        if len(set(kinds)) > 1:
            raise ConfigError(
                f"{where}.ratio.profile: {other} is a profile of {kinds[1]}, and {profile} of {kinds[0]}: "
                "their rates have no ratio.\n  Expected a profile of the same kind."
            )


def check_topology(where: str, topology: Topology) -> None:
    """Raise `ConfigError` for a topology with an unknown kind of DUT, ruleset or option."""
    _check_kind(where, topology)
    try:
        check_set_up(topology)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_kind(where: str, topology: Topology) -> None:
    if topology.datapath != CABLE.datapath:
        try:
            check_kind(topology.datapath)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None


def _check_compared(where: str, topology: Topology, promise: str) -> None:
    check_topology(f"{where}.to", topology)
    counts = "instructions" in abilities(topology.datapath)
    if counts != (promise == "cost"):
        has = "counts instructions and has no rate" if counts else "has rates and counts no instructions"
        instead = "cost: {to: ..., instructions: ...}" if counts else "ratio: {to: ..., rate: ...}"
        raise ConfigError(f"{where}.to: {topology.key} {has}.\n  Expected a topology that has both, or {instead}.")


def _check_profile(where: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        other = ", or the profile of a row" if set(known) - set(names("profiles")) else ""
        raise ConfigError(
            f"{where}: {quoted(name)} is not a profile.\n  Expected a name below variables/profiles{other}."
            f"{did_you_mean(name, sorted(known))}"
        )
