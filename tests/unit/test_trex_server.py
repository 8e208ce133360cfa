"""What is said of a TRex server that failed, and who may end one that a run left behind."""

import dataclasses
import os
import subprocess
import sys

import pytest

from ctbench.traffic.trex.server import Owner, excerpt

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
    ],
)
def test_an_excerpt_is_what_went_wrong_else_the_last_lines(log: str, said: str) -> None:
    assert excerpt(log) == said


def test_an_excerpt_of_a_long_log_is_short() -> None:
    assert excerpt("".join(f"error {number}\n" for number in range(100))).startswith("error 94 | ")


def test_a_run_that_goes_on_keeps_its_server() -> None:
    assert not Owner.myself().is_gone()


def test_a_run_that_has_ended_does_not() -> None:
    code = "from ctbench.traffic.trex.server import Owner; print(Owner.myself())"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    text = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout

    owner = Owner.parse(text)

    assert owner is not None
    assert owner.is_gone()


def test_another_process_with_the_same_number_is_not_the_owner() -> None:
    assert dataclasses.replace(Owner.myself(), ticks="1").is_gone()
    assert dataclasses.replace(Owner.myself(), boot="another").is_gone()


def test_nobody_knows_whether_a_run_on_another_machine_goes_on() -> None:
    assert not dataclasses.replace(Owner.myself(), machine="another", pid="4000000").is_gone()


@pytest.mark.parametrize("text", ["", "somebody", "ctbench", "ctbench process 1 of x"])
def test_what_is_no_note_of_ours_has_no_owner(text: str) -> None:
    assert Owner.parse(text) is None
