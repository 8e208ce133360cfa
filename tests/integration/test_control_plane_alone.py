"""What a forwarding thread of the real OVS-DPDK does with its time. Alone: how much of a CPU it gets is measured."""

import pytest
from integration.test_control_plane import CONTENTION, PLAIN, measure, run
from integration.test_suites_records import judged

from ctbench.run.acceptance import AcceptanceRun

__all__ = ["run"]

pytestmark = pytest.mark.usefixtures("unhurried")


def test_a_thread_is_sampled_at_the_highest_load(run: AcceptanceRun) -> None:
    record = judged(lambda: measure(run, CONTENTION, PLAIN, "short-lived", mutex_share="<= 0.1%"))
    if record.verdict == "not measured" and record.limited_by != "fault":
        pytest.skip(f"This machine was too busy to measure it: {record.verdict_reason}")
    assert record.verdict == "missed", record.verdict_reason
    assert [trial.phase for trial in record.evidence.trials] == ["saturation", "samples"]
    (profile,) = record.evidence.profiles
    # How long the thread ran is the machine's business; that it was sampled all the time that it ran is the sampler's,
    # which sees it where it waits for a CPU as well, and may wait for one itself.
    assert 0.5 * profile.hz * profile.ran_s < profile.samples < 1.2 * profile.hz * profile.seconds
    assert profile.samples >= 300 and 0 < profile.locks < profile.samples / 2
    assert {each.name.partition(" ")[0] for each in profile.functions if each.lock} & {"pthread_mutex_lock"}
