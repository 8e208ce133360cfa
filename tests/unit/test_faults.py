"""Something breaks in a run on a simulated testbed: what is kept of the test, and how the run goes on."""

import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from whole_records import read_all

from ConntrackSLA import ConntrackSLA, library
from ctbench.base import errors
from ctbench.base.errors import GeneratorError, TestbedError
from ctbench.hosts.local import fate
from ctbench.results.record import Record

from .simulated import FORWARDING, made_up_record
from .simulated_run import FORWARD, GATING, SimulatedTestbed, Started, simulated

__all__ = ["simulated"]

CABLE_KEY = "cable/none/1cpu-1rxq"
DIED = "ovs-vswitchd (process 16) was killed by SIGKILL."


class Unheard(Exception):
    """Of a kind that nobody has thought of."""


def broken_in_third_trial(simulated: SimulatedTestbed, error: Exception) -> Started:
    """A run in which the third trial of the first test breaks; the trial of its ceiling comes before."""
    simulated.faults[1 + 3] = error
    return simulated.begin()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (GeneratorError("The link broke."), "the measurement broke off: The link broke, in trial 3, at "),
        (TestbedError("The table stays full."), "the measurement broke off: The table stays full, in trial 3, at "),
        (OSError(5, "Input/output error"), "OSError: [Errno 5] Input/output error (traceback in "),
        (Unheard("two\nlines"), "unexpected error: Unheard: two lines (traceback in "),
        (KeyError("tx"), "unexpected error: KeyError: 'tx' (traceback in "),
    ],
)
def test_whatever_breaks_in_a_trial_the_record_has_the_trials_before_it_and_the_next_test_is_measured(
    simulated: SimulatedTestbed, tmp_path: Path, error: Exception, reason: str
) -> None:
    started = broken_in_third_trial(simulated, error)
    broken, next_one = started.measure(FORWARD), started.measure(FORWARD)

    assert (broken.verdict, broken.limited_by, len(broken.evidence.trials)) == ("not measured", "fault", 2)
    assert reason in broken.verdict_reason
    assert "Traceback" not in "".join(started.said)
    assert simulated.discarded == [FORWARDING]  # after the record was written, and before the next test
    assert next_one.verdict == "met"
    assert [record.verdict for record in read_all(tmp_path)[0]] == ["not measured", "met"]
    log = tmp_path / errors.UNEXPECTED_LOG
    assert log.exists() == (not isinstance(error, TestbedError))
    if log.exists():
        assert "Traceback (most recent call last)" in log.read_text() and type(error).__name__ in log.read_text()


def test_a_dut_that_died_is_named_with_the_trial_and_its_load(simulated: SimulatedTestbed) -> None:
    started = broken_in_third_trial(simulated, GeneratorError("The memif link is closed."))
    simulated.broken = ""
    started.run.testbed.trouble = lambda: DIED  # type: ignore[attr-defined]
    record = started.measure(FORWARD)
    assert record.verdict_reason.startswith(
        "the measurement broke off: ovs-vswitchd (process 16) was killed by SIGKILL, in trial 3, at "
    )


def test_a_gate_keeps_its_trials_as_well(simulated: SimulatedTestbed) -> None:
    simulated.faults[1 + 2] = Unheard()
    record = simulated.begin(campaign=GATING).measure(FORWARD)
    assert (record.verdict, len(record.evidence.trials)) == ("not measured", 1)


def test_a_wish_to_end_the_run_passes(simulated: SimulatedTestbed) -> None:
    class Stop(Exception):
        pass

    errors.let_pass(Stop)
    started = broken_in_third_trial(simulated, Stop())
    with pytest.raises(Stop):
        started.measure(FORWARD)
    assert started.run.records == []


def test_a_dut_that_cannot_be_set_up_is_a_record_with_what_it_was(simulated: SimulatedTestbed) -> None:
    simulated.errors[FORWARDING] = TestbedError(DIED)
    record = simulated.begin().measure(FORWARD)
    assert (record.verdict, record.evidence.trials) == ("not measured", [])
    assert record.verdict_reason == f"{FORWARDING} could not be set up: {DIED}"
    assert simulated.discarded == [FORWARDING]


def test_a_dut_that_broke_between_two_tests_is_replaced_and_the_record_says_so(simulated: SimulatedTestbed) -> None:
    started = simulated.begin()
    started.measure(FORWARD)
    simulated.broken = DIED
    record = started.measure(FORWARD)
    assert record.verdict == "met"
    assert record.notes == [f"Before it was set up for this test, a fresh DUT was needed: {DIED}"]
    assert f"  a fresh DUT is needed: {DIED}" in started.said


def test_what_could_not_be_put_back_is_said(simulated: SimulatedTestbed) -> None:
    simulated.errors[FORWARDING] = TestbedError("It is broken.")
    simulated.replace_broken = lambda _: ""  # type: ignore[method-assign]
    simulated.broken = "still"
    started = simulated.begin()
    started.measure(FORWARD)
    assert started.said[-1] == "  while the DUT was taken down: The host does not answer."


def test_a_ceiling_that_broke_is_measured_once_more_and_not_remembered(simulated: SimulatedTestbed) -> None:
    started = simulated.begin()
    simulated.faults[1] = GeneratorError("The ends of the cable did not meet.")
    record = started.measure(FORWARD)
    assert (record.verdict, record.evidence.ceiling) == ("met", pytest.approx(2_500_000, rel=0.05))
    assert simulated.applied == [CABLE_KEY, CABLE_KEY, FORWARDING]
    assert (
        "once more, over a fresh cable: The ends of the cable did not meet, in trial 1, a closed loop"
        in record.notes[0]
    )


def test_a_ceiling_that_breaks_twice_spoils_one_test_and_not_the_run(simulated: SimulatedTestbed) -> None:
    started = simulated.begin()
    simulated.faults |= {1: GeneratorError("It broke."), 2: GeneratorError("It broke again.")}
    record = started.measure(FORWARD)
    assert record.verdict == "not measured"
    assert record.verdict_reason.startswith("The generator's ceiling could not be measured: It broke again, in trial 1")
    assert started.measure(FORWARD).verdict == "met"


def test_a_record_is_written_where_the_testbed_says_nothing_any_more(
    simulated: SimulatedTestbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulated, "snapshot", lambda: 1 / 0)
    record = simulated.begin().measure(FORWARD)
    assert (record.verdict, len(read_all(tmp_path)[0])) == ("not measured", 1)
    assert "ZeroDivisionError" in record.verdict_reason


def test_the_table_of_verdicts_is_shown_where_the_testbed_cannot_be_taken_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(library.logger, "console", shown.append)
    monkeypatch.setattr(library.logger, "error", shown.append)

    def close() -> None:
        raise TestbedError("The sandbox does not end.")

    record: Record = made_up_record()
    keywords = ConntrackSLA()
    keywords._run = SimpleNamespace(close=close, records=[record], summary=lambda: "the table", output=tmp_path)  # type: ignore[assignment]
    keywords.close()
    keywords.close()
    assert shown == ["The testbed could not be taken down: The sandbox does not end.", "\nthe table"]


def test_the_end_of_a_process_in_words() -> None:
    assert fate(-signal.SIGKILL) == "was killed by SIGKILL"
    assert fate(-40) == "was killed by signal 40"
    assert fate(1) == "ended with status 1"


def test_an_error_is_one_sentence_where_its_traceback_cannot_be_written(tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.touch()
    assert errors.sentence_of(KeyError("x"), nowhere) == "unexpected error: KeyError: 'x'."
    assert list(tmp_path.iterdir()) == [nowhere]
