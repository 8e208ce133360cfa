"""First-failure data capture: what a DUT that failed is asked, and what a run keeps of it."""

from pathlib import Path

import pytest

from ctbench.base.errors import OutputError, TestbedError
from ctbench.dut.base import MOST, Question, ask, shortened
from ctbench.hosts.base import Completed
from ctbench.hosts.local import LocalHost
from ctbench.report.compose import make_rows
from ctbench.report.reference import References
from ctbench.results import store
from ctbench.results.record import Record

from .simulated import FORWARDING
from .simulated_run import FORWARD, SimulatedTestbed, Started, floors, simulated

__all__ = ["simulated"]


class Silent(LocalHost):
    """A daemon that does not answer; whatever else is asked is answered."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, argv: object, *_: object, **__: object) -> Completed:  # type: ignore[override]
        name = str(next(iter(argv)))  # type: ignore[call-overload]
        self.asked.append(name)
        if name == "ovs-appctl":
            raise TestbedError("No answer within 5 s.")
        return Completed(0, "said\n", "")


def test_each_answer_has_its_command_in_front_and_one_that_fails_keeps_no_other_away() -> None:
    failing = Question("b", ("sh", "-c", "echo no >&2; exit 3"))
    told = ask(LocalHost(), [failing, Question("c", ("no-such-program-anywhere",)), Question("a", ("echo", "one"))])
    assert told["a"] == "$ echo one\none\n"
    assert "(stderr) no" in told["b"] and "(exit status 3)" in told["b"]
    assert "(no answer: " in told["c"]


def test_a_daemon_that_does_not_answer_is_asked_once() -> None:
    host = Silent()
    names = ["upcall", "memory", "coverage"]
    told = ask(host, [*(Question(name, ("ovs-appctl",), daemon="ovs") for name in names), Question("ip", ("ip",))])
    assert host.asked == ["ovs-appctl", "ip"]
    assert "(no answer: No answer within 5 s.)" in told["upcall"]
    assert all("(not asked: ovs did not answer before)" in told[name] for name in names[1:])


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


def test_a_test_that_is_missed_keeps_what_the_dut_said_and_one_that_is_met_does_not(
    simulated: SimulatedTestbed, tmp_path: Path
) -> None:
    met, record = Started(tmp_path / "met", simulated).measure(FORWARD), missed(simulated, tmp_path)

    assert (met.verdict, met.capture) == ("met", None)
    assert not (tmp_path / "met/captures").exists()
    assert (record.verdict, record.capture) == ("missed", "captures/suite.test")
    assert (tmp_path / "captures/suite.test/log.txt").read_text() == f"{FORWARDING}\n"
    (stored,), _ = store.read_stored(tmp_path)
    (row,) = make_rows([stored], tmp_path, References({}))
    assert row.capture and row.capture.href == "captures/suite.test/"


def test_a_dut_that_broke_is_asked_before_it_goes(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    standing: list[int] = []

    def said() -> dict[str, str]:
        standing.append(len(simulated.discarded))
        return {"log": "died\n"}

    simulated.capture = said  # type: ignore[method-assign]
    simulated.faults[3] = TestbedError("It died.")
    record = Started(tmp_path, simulated).measure(FORWARD)
    assert (record.limited_by, record.capture) == ("fault", "captures/suite.test")
    assert standing == [0] and simulated.discarded


def test_what_hinders_the_capture_is_a_note_and_the_verdict_stays(simulated: SimulatedTestbed, tmp_path: Path) -> None:
    def broken() -> dict[str, str]:
        raise TestbedError("The host is gone.")

    simulated.capture = broken  # type: ignore[method-assign]
    record = missed(simulated, tmp_path)
    assert (record.verdict, record.capture) == ("missed", None)
    assert "What the DUT says of its failure is not kept: The host is gone." in record.notes
