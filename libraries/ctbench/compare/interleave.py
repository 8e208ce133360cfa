"""Two installations of Open vSwitch measured in turn on one testbed: the order of the runs, and their testbed files.

A B B A: what drifts slowly (a machine that grows warm, a neighbour that wakes up) falls on both sides alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from ctbench.base.bounded_yaml import read_yaml
from ctbench.base.errors import ConfigError
from ctbench.base.units import quoted
from ctbench.base.yaml_files import load
from ctbench.dut.registry import KINDS
from ctbench.hosts.ssh_password import password_of
from ctbench.testbed.config import TestbedConfig

Role = Literal["base", "candidate"]
_ROUND: tuple[Role, ...] = ("base", "candidate", "candidate", "base")
#: In the folder of a run that came to its end: the exit status of ./run sla.
STATUS_FILE = "exit-status"


@dataclass(frozen=True)
class Turn:
    """One run of the suites."""

    number: int
    role: Role
    folder: Path

    @property
    def done(self) -> bool:
        """Whether this run came to its end before."""
        return (self.folder / STATUS_FILE).exists()

    def make_way(self) -> None:
        """Set aside what a run left that was broken off. Its records go on counting."""
        if self.folder.exists():
            aside = len(list(self.folder.parent.glob(f"{self.folder.name}-broken-off*"))) + 1
            self.folder.rename(self.folder.with_name(f"{self.folder.name}-broken-off-{aside}"))


def turns(output: Path, rounds: int) -> Iterator[Turn]:
    """All runs in their order: `<output>/base/01`, `<output>/candidate/02` and so on."""
    for number, role in enumerate(_ROUND * rounds, 1):
        yield Turn(number, role, output / role / f"{number:02d}")


def installation(text: str) -> tuple[Role, str]:
    """Take `base=distribution` apart; `ConfigError` where it is not such a pair."""
    role, _, prefix = text.partition("=")
    if role in ("base", "candidate") and (prefix == "distribution" or prefix.startswith("/")):
        return ("base" if role == "base" else "candidate"), prefix
    raise ConfigError(
        f"--installations: {quoted(text)} is not an installation.\n  Expected base=PREFIX candidate=PREFIX, each with "
        '"distribution" or the absolute path that the build was configured with, such as /opt/ovs-3.3.'
    )


def comparable() -> list[str]:
    """The kinds of DUT of which builds are compared."""
    return [name for name, kind in KINDS.items() if kind.builds]


def write_testbed(testbed: TestbedConfig, prefix: str, target: Path) -> None:
    """Write the file of `testbed` once more, with another Open vSwitch in it.

    A file that is there already has to say the same: it belongs to the runs that are in its folder.
    """
    if not any(KINDS[dut.type].builds for dut in testbed.duts):
        types = " or ".join(comparable())
        raise ConfigError(
            f"{testbed.file}: duts: has no DUT of which builds are compared.\n  Expected one of type {types}."
        )
    for name, host in testbed.hosts.items():
        password_of(name, host)  # a password that is in the file by mistake is refused, and not copied
    assert testbed.path is not None, "it was read from a file"
    data = read_yaml(testbed.path, testbed.file)
    data["duts"] = [
        builds.with_prefix(dut, prefix) if (builds := KINDS[dut["type"]].builds) else dut for dut in data["duts"]
    ]
    text = yaml.safe_dump(data, sort_keys=False)
    if target.exists() and target.read_text(encoding="utf-8") != text:
        raise ConfigError(
            f"{target}: is of a comparison of something else.\n  Expected another --outputdir, or the same options."
        )
    target.write_text(text, encoding="utf-8")
    load("testbeds", target, TestbedConfig)
