"""The package that a team pins: it holds what the checkout does, and its suites run from anywhere."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from ctbench.base.paths import RESULTS_VARIABLE, ROOT

ELSEWHERE = Path(__file__).parents[1] / "data" / "own_suites" / "elsewhere"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


class Installed:
    """The package in a folder, and a team's folder with its suites."""

    def __init__(self, folder: Path) -> None:
        self.packages, self.team, self.home = folder / "packages", folder / "team", folder / "home"
        self.home.mkdir()
        shutil.copytree(ELSEWHERE, self.team)

    @property
    def environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "ROBOT_"))}
        kept.pop(RESULTS_VARIABLE, None)
        return kept | {"PYTHONPATH": str(self.packages), "HOME": str(self.home)}

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """In the team's folder."""
        return subprocess.run(
            list(map(str, command)), cwd=self.team, env=dict(self.environment), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`conntrack-sla ARGUMENTS`."""
        return self.run(self.packages / "bin" / "conntrack-sla", *arguments)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed, which builds the wheel without a network: ./run tests installs it")
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    built = [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(built, check=True, stdin=subprocess.DEVNULL)
    (wheel,) = folder.glob("*.whl")
    found = Installed(folder)
    subprocess.run(
        [*pip, "install", "--no-deps", "--no-index", "--target", str(found.packages), str(wheel)], check=True
    )
    return found


def test_a_suite_of_ones_own_finds_the_library_by_its_name(installed: Installed) -> None:
    none = [f"--{name}=NONE" for name in ("output", "log", "report")]
    done = installed.run(sys.executable, "-m", "robot", "--dryrun", *none, "firewall.robot")
    assert (done.returncode, "5 tests, 5 passed" in done.stdout) == (0, True), done.stdout


def test_the_command_judges_the_suites_of_the_package_and_ones_own(installed: Installed) -> None:
    assert installed.command("check", "promises").returncode == 0
    assert installed.command("check", "promises", ".").returncode == 0
    done = installed.command("sla", "--dryrun", "--include", "acceptance")
    assert (done.returncode, "40 tests, 40 passed" in done.stdout) == (0, True), done.stdout


def test_what_it_writes_is_the_users(installed: Installed) -> None:
    before = {path for path in installed.packages.rglob("*") if "__pycache__" not in path.parts}
    done = installed.command("sla", "--dryrun", "firewall.robot")
    assert done.returncode == 0, done.stdout
    assert list((installed.home / ".local" / "state" / "conntrack-sla" / "results").glob("*/output.xml"))
    assert {path for path in installed.packages.rglob("*") if "__pycache__" not in path.parts} == before


def test_the_generator_is_there_as_a_command(installed: Installed) -> None:
    assert installed.run(installed.packages / "bin" / "ctgen", "--help").returncode == 0


@pytest.mark.parametrize(("name", "is_there"), [("sla", True), ("doctor", True), ("tests", False), ("setup", False)])
def test_a_command_that_looks_after_a_checkout_is_not_there(installed: Installed, name: str, is_there: bool) -> None:
    done = installed.command(name, "--help")
    assert (done.returncode, "there is no command" in done.stderr) == ((0, False) if is_there else (2, True))


def test_the_counter_of_instructions_finds_its_topologies(installed: Installed) -> None:
    done = installed.run(installed.packages / "bin" / "icount", "forwrad")
    assert (done.returncode, " forward, " in done.stderr) == (4, True)


def test_the_package_asks_for_what_measuring_needs() -> None:
    listed = re.findall(r"^[\w-].*$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert PROJECT["project"]["dependencies"] == listed


def test_every_folder_of_data_is_in_the_wheel() -> None:
    taken = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    folders = {path.name for path in (ROOT / "resources").iterdir() if path.is_dir()}
    assert folders <= {Path(path).name for path in taken}
