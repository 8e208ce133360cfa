"""Open vSwitch as something that is installed in several places, of which one is measured: builds to compare."""

from collections.abc import Mapping
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.dut.ovs.config import OvsDpdkConfig
from ctbench.dut.ovs.installation import read_versions, require_installation
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.base import Host


class OvsBuilds:
    """Implements `ctbench.dut.kind.Builds`."""

    #: Name for sentences, and the key of a testbed file below which an installation is named.
    title = "Open vSwitch"
    key = "ovs"

    def with_prefix(self, data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """See `Builds.with_prefix`."""
        return {**data, self.key: {**data[self.key], "prefix": prefix}}

    def prefix(self, config: OvsDpdkConfig) -> str:
        """See `Builds.prefix`."""
        return config.ovs.prefix

    def check(self, host: Host, prefix: str) -> None:
        """See `Builds.check`."""
        installation = OvsInstallation.at(prefix)
        if host.run(["test", "-d", installation.prefix], check=False).exit_status != 0:
            raise ConfigError(
                f"there is no such folder on {host.name}.\n  Expected what the build was configured with (--prefix) "
                "and installed to."
            )
        require_installation(host, installation)
        for program in (installation.vswitchd_path, installation.ovsdb_server):
            if host.run(["test", "-f", program, "-a", "-x", program], check=False).exit_status != 0:
                raise MissingResource(f"{program} cannot be executed: install the build once more.")
            said = _version(host, program)
            if program == installation.vswitchd_path and "DPDK" not in said:
                raise MissingResource(f"{program} was built without DPDK: configure the build with --with-dpdk.")

    def versions(self, host: Host, config: OvsDpdkConfig) -> dict[str, Any]:
        """See `Builds.versions`."""
        installation = OvsInstallation.at(config.ovs.prefix)
        try:
            versions = read_versions(host, installation.vswitchd_path)
        except (TestbedError, IndexError):
            versions = {}
        return {f"{self.title} in {installation.prefix}": versions}


def _version(host: Host, program: str) -> str:
    """What a program of Open vSwitch says about itself."""
    # Python raises where a script lacks its #! line; env ends with a status and a message instead.
    done = host.run(["env", program, "--version"], check=False)
    if done.exit_status != 0 or "Open vSwitch" not in done.stdout:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["it said nothing"]
        raise MissingResource(f"{program} --version does not work ({lines[-1]}): install the build once more.")
    return done.stdout
