"""The command `ctgen`: what it shows of a trial, and what it says of a mistake."""

import json
from pathlib import Path

import pytest

from ctgen import Trial
from ctgen.command import main

pytestmark = [pytest.mark.usefixtures("compiled_generator"), pytest.mark.beside_others]
SHORT = ("--cable", "--seconds", "0.1")
IPV6 = ("client_ip=2001:2:0:16::1", "server_ip=2001:2:0:48::1")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("--rate", "1k"), ["of 100\n", "connections/s", "connect time"]),
        (("--packets", "--rate", "10k", "flows=10"), ["of 1,000\n", "packets/s", "from the client"]),
        (("--under-way", "4", "messages=3", "ip_version=6", *IPV6), ["4 under way"]),
        (("--packets", "--rate", "100", "frame_bytes=9000"), ["of 10\n"]),
        (("--hold", "50"), ["50 of 50"]),
    ],
)
def test_a_trial_is_shown(arguments: tuple[str, ...], shown: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*SHORT, *arguments)) == 0
    out = capsys.readouterr().out
    assert "cable, 1 rings" in out
    assert [each for each in shown if each not in out] == []


def test_all_counts_are_there_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main((*SHORT, "--rate", "1k", "--json")) == 0
    assert Trial.model_validate(json.loads(capsys.readouterr().out)).intended == 100


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("--cable", "messages=x"), 2, "messages: Input should be a valid integer"),
        (("--cable", "mesages=1"), 2, "mesages: unknown key.\n  Expected one of: ack_before_reply, at_once,"),
        (("--cable", "client_ip=16.0.0"), 2, 'client_ip: "16.0.0" is not an IPv4 address.'),
        (("--memif", "/no/client", "/no/server"), 1, "The DUT's memif port /no/client does not answer"),
        (("--interfaces", "no-such-0", "no-such-1"), 1, "The generator cannot use the interface no-such-0"),
        (("--cable", "--packets", "--hold", "1"), 3, "no connection of it can be held open"),
    ],
)
def test_a_mistake_is_a_sentence_and_a_status(
    arguments: tuple[str, ...], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    shown = capsys.readouterr()
    assert said in shown.err and shown.out == ""


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--cable", "--rate", "0"),
        ("--cable", "--rx-queues", "1M"),
        ("--cable", "--under-way", "1.5"),
        ("--cable", "--cpus", "a"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2


def test_it_compiles_the_kernel_and_does_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ctgen import library

    monkeypatch.setattr(library, "_cache", lambda: tmp_path)
    monkeypatch.setattr(library, "FLAGS", (*library.FLAGS, "-O0"))  # with which it takes a second
    library.kernel.cache_clear()
    assert main(("--build",)) == 0
    library.kernel.cache_clear()
    assert [path.suffix for path in tmp_path.iterdir()] == [".so"] and capsys.readouterr().out == ""
