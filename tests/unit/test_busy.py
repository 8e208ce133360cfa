"""A test that fails is run once more where the machine was busy, and only there (tests/conftest.py)."""

import busy
import pytest


@pytest.mark.parametrize(
    ("late_s", "worked", "expected"),
    [(0.0, 50, False), (0.04, 89, False), (0.06, 50, True), (0.0, 95, True), (0.0, 0, False)],
)
def test_a_machine_is_busy_where_it_stood_still_or_had_no_cpu_left(
    late_s: float, worked: int, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter([(100, 1000), (100 + worked, 1100)])
    monkeypatch.setattr(busy, "_worked", lambda: next(ticks))
    machine = busy.Machine.__new__(busy.Machine)  # nothing watches it
    machine.begin()
    machine._late_s, machine._due = late_s, busy.monotonic() + 60
    assert bool(machine) is expected


def test_the_machine_counts_its_work() -> None:
    worked, whole = busy._worked()
    assert 0 < worked < whole
