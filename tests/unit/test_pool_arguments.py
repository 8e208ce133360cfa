"""What pabot is told in a folder of its own means what the user said in theirs."""

from pathlib import Path

import pytest
from robot.run import RobotFramework

from ctbench.cli.robot.pool_arguments import absolute_folders, for_pabot

pytestmark = pytest.mark.unit


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder."""
    for file in ("only.py", "a b.robot", "reader.py", "old.xml"):
        (tmp_path / file).touch()
    (tmp_path / "suites").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_are_found_from_any_folder(here: Path) -> None:
    given = ["--prerunmodifier", "only.py:nat:x", "--prerunmodifier", "module.Class", "--parser", "reader.py"]
    given += ["--rerunfailed", "old.xml", "--outputdir", "out", "-P", "libs:/srv/libs", "suites", "a b.robot"]

    assert sorted(for_pabot(given, "")) == sorted([
        f"--prerunmodifier={here}/only.py:nat:x", "--prerunmodifier=module.Class", f"--parser={here}/reader.py",
        f"--rerunfailed={here}/old.xml", f"--outputdir={here}/out", f"--pythonpath={here}/libs:/srv/libs",
        f"{here}/suites", f"{here}/a b.robot",
    ])  # fmt: skip


def test_what_the_suites_processes_read_in_the_users_folder_stays_as_it_was_written(here: Path) -> None:
    given = ["-v", "SLA:only.py", "--variablefile", "only.py", "--listener", "only.py", "suites"]
    assert for_pabot(given, "")[:-1] == ["--variable=SLA:only.py", "--variablefile=only.py", "--listener=only.py"]


def test_nothing_that_was_said_is_lost_on_the_way(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["--nostatusrc", "--dotted", "-i", "1cpuANDnat", "-i", "bond", "--doc", "--chunk", "-M", "A b: -c =d"]
    parse = RobotFramework().parse_arguments
    monkeypatch.setenv("ROBOT_OPTIONS", "--exclude slow")
    meant, _ = parse([*given, "suites"])
    told = for_pabot([*given, "suites"], "")
    monkeypatch.delenv("ROBOT_OPTIONS")  # pabot is not given it

    assert parse(told) == (meant, [str(here / "suites")])
    assert meant["exclude"] == ["slow"] and meant["doc"] == "--chunk" and meant["statusrc"] is False


def test_several_folders_have_the_name_that_robot_gives_them(here: Path) -> None:
    assert "--name=Suites & A B" in for_pabot(["suites", "a b.robot"], "Suites & A B")


def test_a_list_of_folders_is_found_from_any_folder(here: Path) -> None:
    assert absolute_folders("libs:/srv/libs:") == f"{here}/libs:/srv/libs"
    assert absolute_folders("") == ""
