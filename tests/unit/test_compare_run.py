"""A start of two builds as one run of the suites: what is chosen, and what its ratio is worth."""

import pytest

from ctbench.base.errors import ConfigError, MissingResource
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.promises import PROMISES
from ctbench.results.metrics import METRICS
from ctbench.results.record_model import Figure
from ctbench.run.measurement import others, plan
from ctbench.run.settings import RunSettings
from ctbench.sla.verdict import Verdict, judge_builds
from ctbench.traffic.profiles import load_profile

SHORT = load_profile("short-lived")
CPS = PROMISES["connection rate"]


@pytest.mark.parametrize("given", [{"campaign": "builds"}, {"base": "/opt/ovs-3.3"}])
def test_a_campaign_of_pairs_and_the_build_to_compare_with_go_together(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="go together"):
        RunSettings.load(**given)


def test_nothing_is_measured_but_the_pair_of_builds_and_nothing_is_promised() -> None:
    settings = RunSettings.load(campaign="builds", base="/opt/ovs-3.3")
    # A topology that no SLA file has.
    topology = Topology(cpus=7)
    planned = plan(CPS, settings.campaign, topology, SHORT)
    floor = settings.floor(topology, SHORT, planned.main)
    assert (dict(floor.thresholds), floor.metric.name) == ({}, "of_build")
    assert planned.alone(floor, frozenset()) == []
    (setup,) = others(floor, topology).values()
    assert (setup.topology, setup.build) == (topology, "/opt/ovs-3.3")
    pair = planned.pair("of_build")
    assert isinstance(planned.main, Pair) and pair is planned.main
    assert pair.looks == (48,)
    assert planned.named_after(floor) is pair


@pytest.mark.parametrize("topology", [CABLE, Topology(datapath="linux-router", ruleset="forward")])
def test_what_comes_in_one_build_only_is_skipped(topology: Topology) -> None:
    settings = RunSettings.load(campaign="builds", base="/opt/ovs-3.3")
    with pytest.raises(MissingResource, match="there is one"):
        plan(CPS, settings.campaign, topology, SHORT)


def verdict(*, value: float | None = None, limited_by: str = "dut") -> Verdict:
    settings = RunSettings.load(campaign="builds", base="/opt/ovs-3.3")
    planned = plan(CPS, settings.campaign, Topology(), SHORT)
    figures = {} if value is None else {"of_build": Figure(value=value, unit="ratio")}
    outcome = Outcome(METRICS["of_build"], figures, limited_by, "it died.", kept_conditions=False)  # type: ignore[arg-type]
    return judge_builds(outcome, settings.floor(Topology(), SHORT, planned.main))


def test_a_ratio_is_met_whatever_it_is_and_none_is_not_measured() -> None:
    assert (verdict(value=0.5).word, verdict(value=1.5).word) == ("met", "met")
    assert verdict(value=0.97).reason.startswith("97.0 % of the build of /opt/ovs-3.3, of which nothing is promised")
    assert verdict().word == verdict(value=0.97, limited_by="fault").word == "not measured"
    assert verdict().reason == "it died."
