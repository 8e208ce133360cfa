"""Something breaks in a run on a simulated testbed: what is kept of the test, what the DUT is asked, how it goes on."""

import signal
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from whole_records import read_all

from ConntrackSLA import ConntrackSLA, library
from ctbench.base import errors
from ctbench.base.errors import GeneratorError, OutputError, TestbedError, UnknownAnswer
from ctbench.dut.base import MOST, ask, shortened
from ctbench.hosts.base import Completed
from ctbench.hosts.local import LocalHost, fate
from ctbench.report.compose import make_rows
from ctbench.results import store
from ctbench.results.record import Record
from ctbench.run.measurement import TestName

from .simulated import FORWARDING, made_up_record
from .simulated_run import FORWARD, SNAT, SimulatedTestbed, Started, floors, rate_of


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


def test_a_comparison_that_was_lost_stays_lost_whatever_breaks_after_it(simulated: SimulatedTestbed) -> None:
    simulated.faults[1 + 3] = Unheard()
    record = simulated.begin(floors=floors(">= 80%")).measure(SNAT)
    assert (record.verdict, record.limited_by, len(record.evidence.trials)) == ("missed", "fault", 2)


def test_a_wish_to_end_the_run_passes(simulated: SimulatedTestbed) -> None:
    class Stop(Exception):
        pass

    errors.let_pass(Stop)
    started = broken_in_third_trial(simulated, Stop())
    with pytest.raises(Stop):
        started.measure(FORWARD)
    assert started.run.records == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnknownAnswer("`dpif/show` is not known."), "unknown-answer"),
        (TestbedError("ovs-vswitchd (process 16) was killed by SIGKILL."), "fault"),
    ],
)
def test_a_dut_that_cannot_be_set_up_is_a_record_with_what_could_not_be_put_back(
    simulated: SimulatedTestbed, error: TestbedError, code: str
) -> None:
    simulated.errors[FORWARDING] = error
    record = simulated.begin().measure(FORWARD)
    assert (record.verdict, record.verdict_code, record.evidence.trials) == ("not measured", code, [])
    assert record.verdict_reason == f"{FORWARDING} could not be set up: {error}"
    assert simulated.discarded == [FORWARDING]
    simulated.replace_broken = lambda _: ""  # type: ignore[method-assign]
    simulated.broken = "still"
    started = simulated.begin()
    started.measure(FORWARD)
    assert started.said[-1] == "  while the DUT was taken down: The host does not answer."


def test_a_ceiling_that_breaks_spoils_one_test_and_not_the_run(simulated: SimulatedTestbed) -> None:
    started = simulated.begin()
    simulated.faults |= {1: GeneratorError("It broke.")}
    record = started.measure(FORWARD)
    assert record.verdict == "not measured"
    assert record.verdict_reason.startswith("The generator's ceiling could not be measured: It broke, in trial 1")
    assert started.measure(FORWARD).verdict == "met"


def test_verdicts_are_shown_where_the_testbed_cannot_be_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr(library.logger, "console", shown.append)
    monkeypatch.setattr(library.logger, "error", shown.append)

    close = Mock(side_effect=TestbedError("The sandbox does not end."))
    record: Record = made_up_record()
    keywords = ConntrackSLA()
    keywords._run = SimpleNamespace(close=close, measured=[record], output=tmp_path)  # type: ignore[assignment]
    keywords.close()
    keywords.close()
    failed, table = shown
    assert failed == "The testbed could not be taken down: The sandbox does not end."
    assert table.endswith("1 met")


def test_the_end_of_a_process_and_an_error_without_a_log_are_sentences(tmp_path: Path) -> None:
    assert fate(-signal.SIGKILL) == "was killed by SIGKILL"
    assert fate(-40) == "was killed by signal 40"
    assert fate(1) == "ended with status 1"
    nowhere = tmp_path / "file"
    nowhere.touch()
    assert errors.sentence_of(KeyError("x"), nowhere) == "unexpected error: KeyError: 'x'."
    assert list(tmp_path.iterdir()) == [nowhere]


def test_each_answer_has_its_command_and_a_program_that_does_not_answer_is_asked_once() -> None:
    failing = ("sh", "-c", "echo no >&2; exit 3")
    told = ask(LocalHost(), {"b": failing, "c": ("no-such-program-anywhere",), "a": ("echo", "one")})
    assert told["a"] == "$ echo one\none\n"
    assert "(stderr) no" in told["b"] and "(exit status 3)" in told["b"]
    assert "(no answer: " in told["c"]
    host = Mock(run=Mock(side_effect=[TestbedError("No answer within 5 s."), Completed(0, "said\n", "")]))
    names = ["upcall", "memory", "coverage"]
    told = ask(host, {name: ("ovs-appctl", name) for name in names} | {"ip": ("ip",)})
    assert [call.args[0][0] for call in host.run.call_args_list] == ["ovs-appctl", "ip"]
    assert "(no answer: No answer within 5 s.)" in told["upcall"]
    assert all("(not asked: ovs-appctl did not answer before)" in told[name] for name in names[1:])


@pytest.mark.parametrize("length", [0, MOST, MOST + 1, 10 * MOST])
def test_an_answer_keeps_its_beginning_and_its_end_and_says_what_is_left_out(length: int) -> None:
    text = "".join(chr(97 + place % 26) for place in range(length))
    kept = shortened(text)
    assert len(kept) <= MOST + 60
    assert kept.startswith(text[:100]) and kept.endswith(text[-100:])
    assert (f"{length - MOST} characters left out" in kept) == (length > MOST)


def test_each_failure_gets_a_folder_of_its_own_and_one_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    for folder in ("captures/suite.test", "captures/suite.test-2"):
        assert store.write_capture({"log": "x"}, tmp_path, "suite.test") == folder
        assert (tmp_path / folder / "log.txt").read_text() == "x"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / store.CAPTURES).write_text("a file")
    with pytest.raises(OutputError, match="what the DUT said of its failure could not be written"):
        store.write_capture({"log": "x"}, tmp_path / "other", "name")


def missed(simulated: SimulatedTestbed, output: Path) -> Record:
    return Started(output, simulated, floors=floors(**{FORWARDING: {"udp-64-10k": {"pps": ">= 900k"}}})).measure(
        FORWARD
    )


def test_only_a_test_that_is_missed_keeps_what_the_dut_said(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    met, record = Started(tmp_path / "met", simulated).measure(FORWARD), missed(simulated, tmp_path)

    assert (met.verdict, met.capture) == ("met", None)
    assert not (tmp_path / "met/captures").exists()
    assert (record.verdict, record.capture) == ("missed", "captures/suite.test")
    assert (tmp_path / "captures/suite.test/log.txt").read_text() == f"{FORWARDING}\n"
    (stored,), _ = store.read_stored(tmp_path)
    (row,) = make_rows([stored], tmp_path)
    assert row.capture == "captures/suite.test/"


def test_what_hinders_the_capture_is_a_note_and_the_verdict_stays(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    simulated.capture = Mock(side_effect=TestbedError("The host is gone."))  # type: ignore[method-assign]
    record = missed(simulated, tmp_path)
    assert (record.verdict, record.capture) == ("missed", None)
    assert "What the DUT says of its failure is not kept: The host is gone." in record.notes


def test_a_test_without_a_floor_that_breaks_off_leaves_a_fresh_dut_to_the_next(simulated: SimulatedTestbed) -> None:
    simulated.faults[1] = TestbedError("ovs-vswitchd was killed by SIGSEGV.")
    started = simulated.begin()
    said = started.run.look(TestName("Suite", "Test"), FORWARD, "udp-64-10k", rate_of("udp-64-10k"))
    assert "SIGSEGV" in said
    assert simulated.discarded == [FORWARDING]
    assert started.run.records == []
