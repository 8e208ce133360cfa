"""Two installations measured side by side, start by start: which starts there are, and their testbed files.

A start is one run of the suites in which each test sets both builds up again and serves them in turn. The builds change
roles from start to start: what favours the one that is set up first favours each as often.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from ctbench.base.bounded_yaml import read_yaml
from ctbench.base.errors import ConfigError
from ctbench.base.units import quoted
from ctbench.base.yaml_files import load
from ctbench.dut.registry import KINDS
from ctbench.hosts.ssh_password import password_of
from ctbench.testbed.config import TestbedConfig

Role = Literal["base", "candidate"]
#: Folders of the base against itself, and of the candidate against the base.
SAME, PAIRS = "base-against-itself", "starts"
#: What an earlier version of this command left in its folder: runs of either side.
_EARLIER = ("base", "candidate")


@dataclass(frozen=True)
class Start:
    """One start of both builds."""

    number: int
    #: Which is set up first, and whose rate is divided by the other's; and which is the other.
    first: Role
    second: Role
    folder: Path

    @property
    def exponent(self) -> int:
        """What turns `first / second` into `candidate / base`; of the base against itself, by turns as well."""
        return 1 if self.number % 2 else -1


def same_starts(output: Path, starts: int) -> Iterator[Start]:
    """The base against itself: `<output>/base-against-itself/01` and so on."""
    for number in range(1, starts + 1):
        yield Start(number, "base", "base", output / SAME / f"{number:02d}")


def pair_starts(output: Path, starts: int) -> Iterator[Start]:
    """The candidate against the base: `<output>/starts/01` and so on."""
    for number in range(1, starts + 1):
        roles: tuple[Role, Role] = ("candidate", "base") if number % 2 else ("base", "candidate")
        yield Start(number, *roles, output / PAIRS / f"{number:02d}")


def refuse_earlier(output: Path) -> None:
    """Raise `ConfigError` where an earlier version of this command measured into the folder."""
    if found := [role for role in _EARLIER if (output / role).is_dir()]:
        raise ConfigError(
            f"{output / found[0]}: has runs of an earlier version, which measured one build after the other.\n"
            "  Expected another --outputdir; ./run compare BASE CANDIDATE compares those runs."
        )


def installation(text: str) -> tuple[Role, str]:
    """Take `base=distribution` apart; `ConfigError` where it is not such a pair."""
    if (found := of_role(text)) and (found[1] == "distribution" or found[1].startswith("/")):
        return found
    raise ConfigError(
        f"--installations: {quoted(text)} is not an installation.\n  Expected base=PREFIX candidate=PREFIX, each with "
        '"distribution" or the absolute path that the build was configured with, such as /opt/ovs-3.3.'
    )


def of_role(text: str) -> tuple[Role, str] | None:
    """Take `base=something` apart; None where it is not such a pair."""
    role, _, what = text.partition("=")
    if role in ("base", "candidate") and what:
        return ("base" if role == "base" else "candidate"), what
    return None


def comparable() -> list[str]:
    """The kinds of DUT of which builds are compared."""
    return [name for name, kind in KINDS.items() if kind.builds]


def as_written(testbed: TestbedConfig) -> dict[str, Any]:
    """What a testbed's file says, to write it once more."""
    for name, host in testbed.hosts.items():
        password_of(name, host)  # a password that is in the file by mistake is refused, and not copied
    assert testbed.path is not None, "it was read from a file"
    found: dict[str, Any] = read_yaml(testbed.path, testbed.file)
    return found


def write_testbed(testbed: TestbedConfig, prefix: str, target: Path) -> None:
    """Write the file of `testbed` once more, with another Open vSwitch in it; see `write_once`."""
    if not any(KINDS[dut.type].builds for dut in testbed.duts):
        types = " or ".join(comparable())
        raise ConfigError(
            f"{testbed.file}: duts: has no DUT of which builds are compared.\n  Expected one of type {types}."
        )
    data = as_written(testbed)
    data["duts"] = [
        builds.with_prefix(dut, prefix) if (builds := KINDS[dut["type"]].builds) else dut for dut in data["duts"]
    ]
    write_once(data, target)


def write_once(data: Mapping[str, Any], target: Path) -> None:
    """Write a testbed file. One that is there already has to say the same: it belongs to the runs in its folder."""
    text = yaml.safe_dump(data, sort_keys=False)
    if target.exists() and target.read_text(encoding="utf-8") != text:
        raise ConfigError(
            f"{target}: is of a comparison of something else.\n  Expected another --outputdir, or the same options."
        )
    target.write_text(text, encoding="utf-8")
    load("testbeds", target, TestbedConfig)
