"""A DUT that nothing is wrong with: what a trial asks of it, for DUTs of tests to inherit."""

from ctbench.dut.base import CpuUse, Problem


class HealthyDut:
    """A `TrialDut` that has nothing to say."""

    def flush_state(self) -> None: ...

    def begin_trial(self) -> None: ...

    def health(self) -> list[Problem]:
        return []

    def trouble(self) -> str:
        return ""

    def cpu_use(self) -> CpuUse | None:
        return None
