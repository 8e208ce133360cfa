"""The Jenkinsfile's own shell lines with a candidate, and the real Open vSwitch: a like build is green, one whose locks
take longer is red."""

import subprocess
from pathlib import Path

import pytest
import yaml
from integration.small_testbed import write_small

from ctbench.base.errors import ExitStatus
from ctbench.base.paths import PROGRAM, RESULTS_VARIABLE, ROOT
from ctbench.dut.emulated.image import compile_program
from ctbench.dut.ovs.settings import DISTRIBUTION_VSWITCHD, OvsInstallation

pytestmark = pytest.mark.usefixtures("able_machine", "unhurried")
#: Preloaded: each lock takes some microseconds more, and connection tracking takes several for each connection.
SLOW_LOCKS = """
int __pthread_mutex_lock(void *mutex);
int pthread_mutex_lock(void *mutex) {
    volatile int i;
    for (i = 0; i < 2000; i++) ;
    return __pthread_mutex_lock(mutex);
}
"""
#: Of one row, a share that no scatter of starts comes near to.
FLOORS = {
    "name": "half", "description": "", "source": "tests", "loss_ratio": "<= 50%",
    "of_build": {"base": "distribution", "rate": ">= 60%"}, "ovs-dpdk/conntrack/1cpu-1rxq": {"short-lived": {}},
}  # fmt: skip
SCRIPT = (
    (ROOT / "Jenkinsfile").read_text().split("label: 'Measure', returnStatus: true, script: '''")[1].split("'''")[0]
)


def prefix(folder: Path, preloaded: str) -> Path:
    """The distribution's Open vSwitch once more, as a prefix, whose daemon has something preloaded."""
    for path in OvsInstallation().files[1:]:
        link = folder / Path(path).relative_to("/usr")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    daemon = folder / "sbin/ovs-vswitchd"
    daemon.write_text(f'#!/bin/sh\nLD_PRELOAD="{preloaded}" exec {DISTRIBUTION_VSWITCHD} "$@"\n')
    daemon.chmod(0o755)
    return folder


@pytest.mark.parametrize(("slow", "status"), [(False, ExitStatus.MET), (True, ExitStatus.MISSED)])
def test_its_lines_are_green_for_a_like_build_and_red_for_a_slow_one(
    slow: bool, status: ExitStatus, tmp_path: Path
) -> None:
    (tmp_path / "slow.c").write_text(SLOW_LOCKS)
    library = tmp_path / "slow.so"
    library.write_bytes(compile_program(tmp_path / "slow.c", "-shared"))
    candidate = prefix(tmp_path / "candidate", str(library) if slow else "")
    write_small(tmp_path / "small.yaml")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(FLOORS))
    (tmp_path / "run").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "test_lists").mkdir()
    row = ["--variable CAMPAIGN:gate", "--test 1 CPU, 1 Queue, Short-Lived Connections", "--suite *.OVS-DPDK.Conntrack"]
    (tmp_path / "test_lists/gate.args").write_text("\n".join(row) + "\n")
    known = {"TEST_LIST": "gate", "OUT": "out", "SLA": str(tmp_path / "mine.yaml"), "POOL": "", "BASE": "distribution"}
    known |= {"HOME": str(tmp_path), RESULTS_VARIABLE: str(tmp_path / "results")}
    known |= {"TESTBED": str(tmp_path / "small.yaml"), "CANDIDATE": str(candidate), "PATH": "/usr/bin:/bin:/usr/sbin"}
    done = subprocess.run(
        ["sh", "-e", "-c", SCRIPT], env=known, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    assert (tmp_path / "out/report.html").is_file()
