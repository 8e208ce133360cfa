"""The kernel's connection table at its limit. Alone: the kernel's counters do not tell whose packets a CPU received."""

from integration.test_table import HOW, ROUTER, bench, testbed

from ctbench.measure.procedures.table_limits import TABLE_EARLY_DROP
from ctbench.testbed.testbed import Testbed

__all__ = ["testbed"]


def test_the_kernel_at_its_limit_refuses_what_is_beyond_it_and_says_so(testbed: Testbed) -> None:
    quick_to_open = HOW.model_copy(update={"opened_per_s": 100_000.0})
    found = TABLE_EARLY_DROP.run(bench(testbed, ROUTER, quick_to_open, forgotten_when_full=0.001))
    assert found.decisions["forgotten_when_full"].kept is True, found.reason
    assert "packets that found the table full" in found.reason
