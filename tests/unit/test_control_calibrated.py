"""What is measured of the control plane becomes floors of a machine, and is compared between builds: more of some is
better, less of others."""

from pathlib import Path

import pytest

from ctbench.base.yaml_files import load
from ctbench.compare.judge import compare
from ctbench.measure.procedure import Outcome
from ctbench.measure.trial import Step
from ctbench.results.environment import CampaignFacts
from ctbench.results.metrics import METRICS
from ctbench.results.record import Record
from ctbench.results.record_model import Figure
from ctbench.sla.calibration import calibrate, sla_file
from ctbench.sla.floor import Floor
from ctbench.sla.floors import Floors

from .calibrated import NONE, around
from .compared import environment, side
from .simulated import SHORT, made_up_record, promises, seen

#: A usual value, what an SLA promises, and which way a floor of this machine lies from it.
METRIC = {
    "mutex_share": (0.07, "<= 20%", 1),
    "new_flow_rate": (160_000.0, ">= 10k", -1),
    "dump_time": (0.9, "<= 2s", 1),
}
KEY = "ovs-dpdk/conntrack/1cpu-1rxq"


def runs(name: str, values: list[float], first: int = 0) -> list[Record]:
    """A run for each value."""
    metric, limit = METRICS[name], METRIC[name][1]
    floor = Floor(KEY, SHORT, "tests", metric, promises(**{name: limit}))
    around_it = {"environment": environment(), "campaign": CampaignFacts(name="quick", search="saturation")}
    found = []
    for number, value in enumerate(values):
        figure = Figure(value=value, unit=metric.unit.name, low=value * 0.9, high=value * 1.1)
        loop = Figure(value=1000.0 + number * 100, unit="connections/s")  # of the trial before: not what is compared
        step = Step(1, "samples", seen(), 0.0)
        outcome = Outcome(metric, {name: figure, "saturation_cps": loop}, "dut", "", True, (step,))
        found.append(made_up_record(outcome, floor, None, run_id=f"run-{first + number}", **around_it))
    return found


@pytest.mark.parametrize("name", METRIC)
def test_a_floor_is_on_the_worse_side_of_what_was_measured_and_can_be_read(name: str, tmp_path: Path) -> None:
    usual, _, worse = METRIC[name]
    records = runs(name, around(usual, 0.04, 6))
    (found,) = calibrate(records, widest=0.5)
    assert found.threshold is not None
    assert (found.threshold.limit - usual) * worse > 0
    file = tmp_path / "here.yaml"
    file.write_text(sla_file("here", records, 0.5, NONE))
    floor = load("sla", str(file), Floors).floors[KEY]["short-lived"].thresholds[name]
    assert floor.limit == pytest.approx(found.threshold.limit) and METRICS[name].operator in str(floor)


@pytest.mark.parametrize("name", METRIC)
@pytest.mark.parametrize(("times", "verdict"), [(1.5, "regressed"), (1 / 1.5, "improved"), (1.0, "no evidence")])
def test_a_build_that_became_worse_is_a_regression_in_either_direction(name: str, times: float, verdict: str) -> None:
    usual, _, worse = METRIC[name]
    factor = times if worse > 0 else 1 / times
    base = runs(name, around(usual, 0.02, 6, seed=1))
    candidate = runs(name, around(usual * factor, 0.02, 6, seed=2), first=6)
    (test,) = compare(side("base", base), side("candidate", candidate)).tests
    assert test.judgement == verdict and test.metric == name
