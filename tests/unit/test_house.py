"""The floors of the house: the lint says where an import goes up, and where `dut` and `traffic` meet."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctbench.base.paths import LIBRARIES, ROOT


@pytest.mark.parametrize(
    ("module", "imported"),
    [("base/units", "run.acceptance"), ("dut/topology", "traffic.profiles"), ("hosts/base", "sla.floor")],
)
def test_an_import_that_goes_up_is_said(tmp_path: Path, module: str, imported: str) -> None:
    shutil.copytree(LIBRARIES, tmp_path / "libraries")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    file = tmp_path / "libraries" / "ctbench" / f"{module}.py"
    file.write_text(f"{file.read_text()}\nimport ctbench.{imported}\n")

    lint = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(
        lint, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path / "libraries")}, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert f"ctbench.{module.replace('/', '.')} -> ctbench.{imported}" in done.stdout
