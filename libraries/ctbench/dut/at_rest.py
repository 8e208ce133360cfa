"""What a DUT answers in which nothing runs between two measurements, and which keeps nothing."""

from ctbench.dut.base import CpuUse, DutCounters, Problem


class AtRest:
    """The part of `ctbench.dut.base.Dut` that such a DUT has nothing to say to."""

    def flush_state(self) -> None:
        """See `Dut.flush_state`: it has no state."""

    def connections(self) -> int:
        """See `Dut.connections`: none are kept."""
        return 0

    def begin_trial(self) -> None:
        """See `Dut.begin_trial`: nothing changes by itself."""

    def health(self) -> list[Problem]:
        """See `Dut.health`: nothing goes wrong unnoticed."""
        return []

    def trouble(self) -> str:
        """See `Dut.trouble`: nothing runs that could die."""
        return ""

    def counters(self) -> DutCounters:
        """See `Dut.counters`: nothing is counted."""
        return DutCounters()

    def cpu_use(self) -> CpuUse | None:
        """See `Dut.cpu_use`: it has no CPU of its own."""
        return None

    def capture(self) -> dict[str, str]:
        """See `Dut.capture`: it has nothing to say."""
        return {}

    def pause(self) -> None:
        """See `Dut.pause`: it takes no CPU."""

    def resume(self) -> None:
        """See `Dut.resume`."""

    def restore(self) -> None:
        """See `Dut.restore`: nothing was changed."""
