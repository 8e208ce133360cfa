"""What integration tests share: a sandbox, the real OVS-DPDK in it, and a way to be an ordinary user."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ctbench.dut.base import Topology
from ctbench.dut.ovs import OvsDpdkDut
from ctbench.errors import MissingResource, TestbedError
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import place, read_machine
from ctbench.hosts.sandbox import Sandbox

#: User and group `nobody` of Debian: what root becomes to be an ordinary user.
NOBODY = "65534"
REPOSITORY = Path(__file__).parents[2]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever is in this folder is an integration test."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("integration")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox; skips where the machine does not allow one."""
    try:
        host = Sandbox()
    except MissingResource as error:
        pytest.skip(str(error))
    with host:
        yield host


@pytest.fixture(scope="module")
def dut(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OvsDpdkDut]:
    """The real OVS-DPDK, oversubscribed so that every topology can be applied on any machine."""
    logs = tmp_path_factory.mktemp("ovs")
    machine = read_machine(sandbox)
    instance = OvsDpdkDut(
        sandbox, machine, lambda topology: place(machine, topology.pmd_cpus, oversubscribed=True), log_folder=logs
    )
    try:
        instance.apply(Topology())
    except MissingResource as error:
        pytest.skip(str(error))
    yield instance
    instance.restore()  # its PMD threads would go on polling


@pytest.fixture(scope="session")
def as_ordinary_user() -> Callable[..., None]:
    """Runs tests of this folder once more as an ordinary user; skips for who is one already."""
    if os.geteuid() != 0:
        pytest.skip("The tests run as an ordinary user already.")
    drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--"]
    here = Path(__file__).parent
    if LocalHost().run([*drop, "test", "-r", str(here / "conftest.py")], check=False).exit_status != 0:
        pytest.skip(f"An ordinary user cannot read this checkout ({REPOSITORY}).")

    def run(*files: str) -> None:
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        # Otherwise pytest would use root's folder for temporary files.
        user = {"LOGNAME": "nobody", "USER": "nobody", "HOME": "/nonexistent"}
        paths = [str(here / file) for file in files]
        done = LocalHost().run(
            [*drop, *command, "--rootdir", str(REPOSITORY), "-c", str(REPOSITORY / "pyproject.toml"), *paths],
            timeout=180,
            check=False,
            env=user,
        )
        if done.exit_status != 0 or " passed" not in done.stdout:
            raise TestbedError(done.stdout[-4000:] + done.stderr[-1000:])

    return run
