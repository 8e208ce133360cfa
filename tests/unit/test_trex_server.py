"""What is said of a TRex server that failed, and who may end one that a run left behind."""

import dataclasses

import pytest

from ctbench.hosts.local import Owner
from ctbench.traffic.trex.server import excerpt

CRASH = """ core, c-port, c-queue, s-port, s-queue, lat-queue
 ------------------------------------------
 1        0      0       1       0      0
 -------------------------------
Error: signal 11:

*** traceback follows ***

1       0x55f96027e33c ./_t-rex-64(+0x32133c) [0x55f96027e33c]

*** addr2line information follows ***

??:0
??:0
"""


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (CRASH, "Error: signal 11:"),
        (
            "Starting  TRex v3.08 please wait  ... \n zmq publisher\n\n\n",
            "Starting TRex v3.08 please wait ... | zmq publisher",
        ),
        ("\x1b[31mERROR: Could not find\x1b[0m Linux interface gx.\n", "ERROR: Could not find Linux interface gx."),
        ("one\n" + 4096 * "\0" + "./t-rex-64: line 74: 427 Killed\n", "./t-rex-64: line 74: 427 Killed"),
        ("", ""),
        ("".join(f"error {number}\n" for number in range(100)), " | ".join(f"error {n}" for n in range(94, 100))),
    ],
)
def test_an_excerpt_is_what_went_wrong_else_the_last_lines(log: str, said: str) -> None:
    assert excerpt(log) == said


@pytest.mark.parametrize(
    ("changed", "gone"),
    [
        ({}, False),
        ({"ticks": "1"}, True),  # another process with the same number
        ({"boot": "another"}, True),
        ({"pid": "4000000"}, True),
        ({"machine": "another", "pid": "4000000"}, False),  # nobody knows whether it goes on there
    ],
)
def test_a_run_that_has_ended_for_sure_does_not_keep_its_server(changed: dict[str, str], gone: bool) -> None:
    owner = dataclasses.replace(Owner.myself(), **changed)

    assert owner.is_gone() is gone
    assert Owner.parse(str(owner)) == owner


@pytest.mark.parametrize("text", ["", "somebody", "ctbench", "ctbench process 1 of x"])
def test_what_is_no_note_of_ours_has_no_owner(text: str) -> None:
    assert Owner.parse(text) is None
