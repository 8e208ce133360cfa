"""The program that sends and counts in the emulated machine, here between three network namespaces of this one."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ctbench.hosts.sandbox import Sandbox
from icount.errors import Missing
from icount.image import GUEST, OWN_PROGRAMS, compile_program

pytestmark = pytest.mark.beside_others

TO_SERVER, TO_CLIENT = "02:00:00:00:00:11", "02:00:00:00:00:12"
ROUTER = Path(__file__).parents[1] / "data" / "icount-router.sh"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        made = compile_program(GUEST / "traffic.c")
    except Missing as error:
        pytest.skip(str(error))
    path = tmp_path_factory.mktemp("traffic") / "traffic"
    path.write_bytes(made)
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def routed(sandbox: Sandbox) -> Sandbox:
    sandbox.run(["sh", "-c", ROUTER.read_text()])
    return sandbox


def counts(routed: Sandbox, program: Path, *words: object) -> list[tuple[int, int]]:
    """Sent and received of each round."""
    said = routed.run([str(program), *map(str, words), TO_SERVER, TO_CLIENT, "0"]).stdout
    rounds = [line.split() for line in said.splitlines()]
    assert all(int(line[4]) > 0 for line in rounds)
    return [(int(line[2]), int(line[3])) for line in rounds]


@pytest.mark.parametrize("flows", [1, 100])
def test_packets_of_a_stream_are_counted_where_they_come_out(routed: Sandbox, program: Path, flows: int) -> None:
    assert counts(routed, program, "stream", flows, 320, 3) == [(320, 320)] * 3


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_connections_are_served(routed: Sandbox, program: Path, protocol: str) -> None:
    assert counts(routed, program, protocol, 64, 2) == [(64, 64)] * 2


@pytest.mark.parametrize("protocol", ["udp", "tcp"])
def test_connections_that_nobody_answers_are_said(routed: Sandbox, program: Path, protocol: str) -> None:
    back = ["ip", "-n", "dut", "route"]
    routed.run([*back, "del", "16.0.0.0/8"])
    try:
        done = routed.run([str(program), protocol, "64", "1", TO_SERVER, TO_CLIENT, "0"], check=False)
        assert (done.exit_status, done.stdout) == (1, "traffic: the first connections were not served: error 0\n")
    finally:
        routed.run([*back, "add", "16.0.0.0/8", "via", "198.18.0.2"])


@pytest.mark.parametrize(
    ("words", "said"),
    [(["stream"], "wrong usage"), (["udp", "33", "1"], "steps of 32"), (["udp", "32", "x"], "a number was expected"),
     (["tcp", "32", "99"], "at most 64 rounds")],
)  # fmt: skip
def test_wrong_usage_is_said(routed: Sandbox, program: Path, words: list[str], said: str) -> None:
    done = routed.run([str(program), *words, TO_SERVER, TO_CLIENT, "0"], check=False)
    assert (done.exit_status, said in done.stdout) == (1, True)


@pytest.mark.parametrize("name", OWN_PROGRAMS)
def test_another_compiler_has_no_complaint(tmp_path: Path, name: str) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not installed")
    argv = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-ffreestanding", "-fno-builtin", "-fno-stack-protector"]
    subprocess.run([*argv, "-c", "-o", tmp_path / f"{name}.o", GUEST / f"{name}.c"], check=True, timeout=60)
