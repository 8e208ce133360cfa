"""./run on a system without apt, which can install nothing: it names what is missing and where to go on."""

import shutil
import subprocess
from pathlib import Path

import pytest

from ctbench.base.paths import ROOT


@pytest.mark.parametrize("command", ["setup", "sla", "tests"])
def test_a_system_without_apt_is_told_of_the_container_in_one_sentence(command: str, tmp_path: Path) -> None:
    for name in ("bash", "dirname", "env", "readlink", "uname"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    done = subprocess.run(
        [ROOT / "run", command], env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (6, "")
    assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr
    for word in ("apt-get", "docs/containers.md"):
        assert word in done.stderr
    assert (ROOT / "docs" / "containers.md").is_file()
