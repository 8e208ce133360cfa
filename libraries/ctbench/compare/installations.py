"""The installations that are compared, looked at before one of them is measured: a night is too long to learn of it."""

from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.dut.ovs.config import OvsDpdkConfig
from ctbench.dut.ovs.installation import require_installation
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.base import Host
from ctbench.hosts.connections import HostPool, machine_of
from ctbench.testbed import checks
from ctbench.testbed.config import TestbedConfig


def check_side(role: str, prefix: str, testbed: TestbedConfig) -> None:
    """Raise an error that begins with the side (`candidate=/opt/ovs-3.3`) where its installation cannot be measured on
    the testbed: `ConfigError` where the prefix is no folder, `MissingResource` where something in it is missing or does
    not work, `TestbedError` where its host cannot be reached."""
    hosts = HostPool(testbed.hosts)
    try:
        for dut in testbed.duts:
            if isinstance(dut, OvsDpdkConfig):
                _check(hosts.host(machine_of(dut.host)), prefix)
        checks.check_machine(_with_prefix(testbed, prefix))
    except CtbenchError as error:
        raise type(error)(f"--installations {role}={prefix}: {error}") from None
    finally:
        hosts.close()


def _with_prefix(testbed: TestbedConfig, prefix: str) -> TestbedConfig:
    duts = [
        dut.model_copy(update={"ovs": dut.ovs.model_copy(update={"prefix": prefix})})
        if isinstance(dut, OvsDpdkConfig)
        else dut
        for dut in testbed.duts
    ]
    return testbed.model_copy(update={"duts": duts})


def _check(host: Host, prefix: str) -> None:
    installation = OvsInstallation() if prefix == "distribution" else OvsInstallation(prefix=prefix)
    if host.run(["test", "-d", installation.prefix], check=False).exit_status != 0:
        raise ConfigError(
            f"there is no such folder on {host.name}.\n  Expected what the build was configured with (--prefix) and "
            "installed to."
        )
    require_installation(host, installation)
    for program in (installation.vswitchd_path, installation.ovsdb_server):
        if host.run(["test", "-f", program, "-a", "-x", program], check=False).exit_status != 0:
            raise MissingResource(f"{program} cannot be executed: install the build once more.")
        said = _version(host, program)
        if program == installation.vswitchd_path and "DPDK" not in said:
            raise MissingResource(f"{program} was built without DPDK: configure the build with --with-dpdk.")


def _version(host: Host, program: str) -> str:
    """What a program of Open vSwitch says about itself."""
    # A script without #! is none of the shell's business here: env says so, where Python would raise.
    done = host.run(["env", program, "--version"], check=False)
    if done.exit_status != 0 or "Open vSwitch" not in done.stdout:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
        raise MissingResource(f"{program} --version does not work ({lines[-1]}): install the build once more.")
    return done.stdout
