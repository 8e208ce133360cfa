"""What an emulated machine says: figures count only where everything is proved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctbench.dut.emulated.log import read_log

pytestmark = pytest.mark.unit

GOOD = """[    0.1] some words of the kernel
workload stream
round stream 4096 4096 30000000
round stream 4096 4096 30000100
round stream 4096 4096 30000300
check 20482 20482 packets routed
check 0 0 connections in the table
workload udp
round udp 256 256 6000000
check 1 1 connections in the table
done
[    5.2] reboot: Restarting system
"""


def test_a_boot_that_proves_everything_counts() -> None:
    log = read_log(GOOD)
    assert (log.trouble, list(log.workloads)) == ("", ["stream", "udp"])
    stream = log.workloads["stream"]
    assert (stream.doubt, [each.instructions for each in stream.rounds]) == ("", [30000000, 30000100, 30000300])
    assert stream.rounds[0].each == 30000000 / 4096


def test_a_workload_that_was_not_tried_is_doubted() -> None:
    assert read_log(GOOD).told("removal").doubt == "no round was counted"


@pytest.mark.parametrize(
    ("said", "instead", "doubt"),
    [
        ("round stream 4096 4096 30000100", "round stream 4096 4095 30000100", "4096 were sent and 4095 came through"),
        ("check 0 0 connections", "check 0 1 connections", "connections in the table: 1 where 0 had to be"),
        ("check 20482 20482 packets", "check 20482  packets", "packets routed: nothing where 20482 had to be"),
        ("check", "chuck", "nothing was proved of the topology"),
        ("round stream", "ruond stream", "no round was counted"),
    ],
)
def test_what_is_not_proved_is_doubted(said: str, instead: str, doubt: str) -> None:
    assert read_log(GOOD.replace(said, instead)).workloads["stream"].doubt == doubt


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        (GOOD.replace("done\n", ""), "its last words are: [ 5.2] reboot: Restarting system"),
        (GOOD.replace("done\n", "broken no wire could be made\n"), "no wire could be made"),
        ("", "its last words are: none"),
        ("[ 1.0] Kernel panic - not syncing: no init found\n", "[ 1.0] Kernel panic - not syncing: no init found"),
    ],
)
def test_a_boot_that_did_not_come_to_its_end_says_why(text: str, trouble: str) -> None:
    assert read_log(text).trouble == trouble


@given(st.text(alphabet="rounda stecmw0123456789\n\r[]", max_size=300))
def test_whatever_is_said_can_be_read(text: str) -> None:
    log = read_log(text)
    assert all(told.rounds or told.doubt for told in log.workloads.values())
