"""What a lab's host had before a run changed it, in a file of the host: the next run restores it after a killed one."""

import json
from dataclasses import dataclass, field

from ctbench.hosts.base import Host
from ctbench.hosts.sandbox import Sandbox

#: Where it is kept. It is lost when the settings are, at a boot.
FILE = "/run/ctbench-found"


@dataclass
class Found:
    """What is to be restored: settings of the kernel and of network cards."""

    #: Path below /proc/sys -> value.
    sysctls: dict[str, str] = field(default_factory=dict)
    #: Interface -> its MTU and whether it was up.
    links: dict[str, tuple[int, bool]] = field(default_factory=dict)
    #: Interface -> `CardSetting.what` -> value: empty where ethtool does not know it.
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    #: File with the CPUs of an interrupt -> those CPUs.
    affinities: dict[str, str] = field(default_factory=dict)

    def keep(self, host: Host) -> None:
        """Write the file, before something is changed; remove it where nothing is left to restore. A sandbox takes its
        settings with it."""
        if isinstance(host, Sandbox):
            return
        if any(vars(self).values()):  # a file is there as a whole, or as it was
            host.run(["sh", "-c", f"cat >{FILE}.new && mv {FILE}.new {FILE}"], stdin=json.dumps(vars(self)))
        else:
            host.run(["rm", "-f", FILE])

    def read(self, host: Host) -> None:
        """Read the file of a run that was killed, where there is one."""
        if text := host.run(["cat", FILE], check=False).stdout:
            vars(self).update(json.loads(text))
