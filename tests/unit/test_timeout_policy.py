"""Whether entries stay as long as was asked for, by what the DUT tells of them."""

from dataclasses import dataclass

import pytest

from ctbench.dut.topology import Topology
from ctbench.measure.procedures.timeout_policy import TIMEOUT_POLICY

from .table_double import TableDouble, table_bench


@dataclass
class Telling(TableDouble):
    """A DUT that tells how long its entries still stay."""

    longest: float | None = 4.0

    def longest_timeout_s(self) -> float | None:
        return self.longest


@pytest.mark.parametrize(
    ("dut", "kept", "said"),
    [
        (Telling(), True, "stays for 4 s more, where 5 s were asked for"),
        (Telling(longest=86_400.0), False, "stays for 86400 s more"),
        (Telling(longest=None), False, "stays for no time"),
        (Telling(miscount=1), False, "the DUT counted 101 entries where 100 connections were open"),
        (Telling(mute=1), False, "the DUT counted 100 entries where 99 connections were open"),
    ],
    ids=["as asked for", "the default instead", "no entry", "an entry too many", "one does not answer"],
)
def test_the_longest_time_that_an_entry_stays_is_what_was_asked_for(dut: Telling, kept: bool, said: str) -> None:
    found = TIMEOUT_POLICY.run(
        table_bench(dut, limits={"longest_timeout": 5.0}, topology=Topology(timeout_s=5, zone_policy="first"))
    )
    decision = found.decisions["longest_timeout"]
    assert decision.kept is kept and said in decision.reason
