"""`./run sla` at its edges, in processes of their own: readers that leave, full disks, folders that vanish. The records
are made up: nothing is measured."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import commands
import pytest
from golden import GOLDEN

pytestmark = pytest.mark.beside_others

#: A record of an SLA that is met.
RECORD = GOLDEN / "records" / "linux-router-nat.snat-with-iptables-10k-flows.json"
SUITE = """*** Settings ***
Library    OperatingSystem

*** Variables ***
${FIRST}     No Operation
${SECOND}    No Operation

*** Test Cases ***
First
    Create Directory    ${OUTPUT DIR}/records
    Copy File    RECORD    ${OUTPUT DIR}/records/first.json
    Run Keyword    ${FIRST}
Second
    Run Keyword    ${SECOND}
    Create Directory    ${OUTPUT DIR}/records
    Copy File    RECORD    ${OUTPUT DIR}/records/second.json

*** Keywords ***
Remove The Folder
    Remove Directory    ${OUTPUT DIR}    recursive=True
Say Much
    FOR    ${i}    IN RANGE    200
        Log To Console    ä ${i} ${{'x' * 500}}
    END
Fill The Disk
    Evaluate    open(r'${OUTPUT DIR}/fill', 'wb', 0).write(b'x' * 10**7)
    FOR    ${i}    IN RANGE    100
        Log    ${i} ${{'y' * 1000}}
    END
""".replace("RECORD", str(RECORD))


@dataclass
class Place:
    """A folder of a test's own: a suite, and where its runs land."""

    folder: Path

    @property
    def suite(self) -> Path:
        return self.folder / "mine" / "quick.robot"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def command(self, *options: str | Path, suite: str | Path | None = None) -> list[str]:
        suites = [self.suite] if suite is None else [suite] if suite else []
        return commands.command("sla", *options, *suites)

    @property
    def environment(self) -> dict[str, str]:
        return commands.environment(self.folder / "results", XDG_STATE_HOME=self.folder / "state")

    def run(self, *options: str | Path, suite: str | Path | None = None, shell: str = "") -> tuple[int, str, str]:
        """Exit status, stdout and stderr; `shell` is what follows the command in bash."""
        command = self.command(*options, suite=suite)
        if shell:
            command = ["/bin/bash", "-c", f'"$@" {shell}', "bash", *command]
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def place(able_machine: None, tmp_path: Path) -> Place:
    for folder in ("mine", "results"):
        (tmp_path / folder).mkdir()
    made = Place(tmp_path)
    made.suite.write_text(SUITE)
    return made


def records(folder: Path) -> list[str]:
    return sorted(path.stem for path in (folder / "records").glob("*.json"))


def test_a_run_that_nobody_listens_to_goes_on_to_its_end(place: Place) -> None:
    status, _, err = place.run(
        "-d", place.output, "-v", "FIRST:Say Much", shell="2>&1 | head -3; exit ${PIPESTATUS[0]}"
    )

    assert status == 0
    assert "Exception" not in err and "Traceback" not in err and err.count("\n") <= 1
    assert records(place.output) == ["first", "second"]
    assert (place.output / "sla.html").is_file() and (place.output / "log.html").is_file()


def test_a_folder_that_is_removed_is_said_and_is_no_mistake_in_the_configuration(place: Place) -> None:
    status, out, err = place.run("-d", place.output, "-v", "FIRST:Remove The Folder")

    assert status == 74
    assert f"{place.output}/output.xml" in err
    assert "configuration" not in out and "Traceback" not in err
    # What comes later is kept.
    assert records(place.output) == ["second"]


def test_a_full_disk_is_said_and_what_was_written_before_is_kept(place: Place) -> None:
    full = '-d "$1/disk/out" -v "FIRST:Fill The Disk"'
    script = (
        'mkdir "$1/disk" && mount -t tmpfs -o size=1m none "$1/disk" || exit 99\n'
        f'"${{@:2}}" {full} "$1/mine/quick.robot"; status=$?; ls "$1/disk/out/records"; exit $status'
    )
    inside = [] if os.geteuid() == 0 else ["--map-root-user"]
    done = subprocess.run(
        ["unshare", "--mount", *inside, "/bin/bash", "-c", script, "bash", str(place.folder), *place.command(suite="")],
        env=place.environment | {"TMPDIR": str(place.folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 99:
        pytest.skip(f"No file system of a test's own can be mounted here: {done.stderr}")

    assert done.returncode == 74
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "first.json" in done.stdout


def test_suites_of_ones_own_have_variables_of_their_own(place: Place) -> None:
    assert place.run("-d", place.output, "-v", "TESTBAD:x")[0] == 0
