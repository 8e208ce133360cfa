"""A new user on a fresh Debian 13: one command installs what is missing and measures, with this release's packages."""

from collections.abc import Iterator

import pytest
from integration.debian_root import DebianRoot, NotMade
from whole_records import read_all

from ctbench.results.record import Record
from ctbench.results.verdict import Code
from tools.all_tests import copy_checkout, folder_that_goes

#: What is installed first takes two minutes: others run meanwhile.
pytestmark = [pytest.mark.root_too, pytest.mark.beside_others]

ROWS = (
    "1 CPU, 1 Queue, Short-Lived Connections",
    "SNAT, 1 CPU, 1 Queue, Short-Lived",
    "Drain, Open vSwitch",
    "Stateful iptables, 10k Flows",
)
#: The options that choose them, and what declines the emulated machine, which none of them needs.
CHOSEN = " ".join(f"--test '{row}'" for row in ROWS)
DECLINED = {"CONNTRACK_SLA_EMULATED": "no"}
#: Why a machine that does other things measures nothing, besides a generator that could not keep its pace.
BUSY = {Code.INVALID, Code.TOO_CLOSE, Code.SCATTERED}


@pytest.fixture(scope="module")
def debian(able_machine: None) -> Iterator[DebianRoot]:
    """Debian 13 with a clone of this checkout in it, and all that it needs; skips where this machine cannot have it."""
    with folder_that_goes() as folder:
        try:
            made = DebianRoot.make(folder / "root", "trixie")
        except NotMade as reason:
            pytest.skip(str(reason))
        copy_checkout(made.clone)
        made.own()
        done = made.type(f"./run sla --dryrun {CHOSEN}", **DECLINED)
        assert done.returncode == 0, done.stdout
        yield made


@pytest.fixture(scope="module")
def said(debian: DebianRoot, alone: None) -> str:
    """What a run of all rows said."""
    done = debian.type(f"./run sla {CHOSEN}", **DECLINED)
    assert done.returncode in (0, 1, 3), done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def records(debian: DebianRoot, said: str) -> dict[str, Record]:
    """What the run left, by test."""
    found, broken = read_all(debian.clone / "results" / "latest")
    assert not broken, broken
    return {record.test: record for record in found}


def test_the_user_has_a_report(debian: DebianRoot, said: str) -> None:
    assert "Traceback" not in said
    assert (debian.clone / "results" / "latest" / "sla.html").is_file()


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_met(row: str, records: dict[str, Record]) -> None:
    record = records[row]
    if record.verdict == "not measured" and (record.limited_by == "generator" or record.verdict_code in BUSY):
        pytest.skip(f"This machine was too busy to measure it: {record.verdict_reason}")
    assert record.verdict == "met", record.message
