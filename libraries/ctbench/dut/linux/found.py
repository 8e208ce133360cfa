"""What a lab's host had before a run changed it, in a file of the host: the next run restores it after a killed one."""

import json
from collections.abc import Set
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter

from ctbench.base.errors import TestbedError
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
    #: Interface -> file with the CPUs of an interrupt -> those CPUs.
    affinities: dict[str, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        #: The same of cards that this run must not touch: it stays in the file.
        self._of_others: dict[str, dict[str, Any]] = {}

    def keep(self, host: Host) -> None:
        """Write the file, before something is changed; remove it where nothing is left to restore. A sandbox takes its
        settings with it."""
        if isinstance(host, Sandbox):
            return
        found = {what: entries | self._of_others.get(what, {}) for what, entries in asdict(self).items()}
        if any(found.values()):  # a file is there as a whole, or as it was
            host.run(["sh", "-c", f"cat >{FILE}.new && mv {FILE}.new {FILE}"], stdin=json.dumps(found))
        else:
            host.run(["rm", "-f", FILE])

    def read(self, host: Host, cards: Set[str], settings: Set[str]) -> None:
        """Read the file of a run that was killed, where there is one. `cards`: this run may touch them; `settings`:
        those that it knows. Raise `TestbedError` where the file cannot be read."""
        try:
            found = TypeAdapter(Found).validate_json(host.run(["cat", FILE], check=False).stdout or "{}")
            theirs = found.links.keys() - cards
            for what, entries in asdict(found).items():  # in order: some of the kernel's settings set others
                others = {key: value for key, value in entries.items() if _card_of(key) in theirs}
                self._of_others[what] = others
                setattr(self, what, {key: value for key, value in entries.items() if key not in others})
            if not settings >= {what for of_card in self.settings.values() for what in of_card}:
                raise ValueError
        except ValueError:
            raise TestbedError(
                f"{host.name}: {FILE}, of a run that was killed, is not whole, or of another version of the suite. "
                f"Restore what it names, then remove it: rm {FILE}"
            ) from None


def _card_of(key: str) -> str:
    """Return the interface of a setting of the kernel, or the key itself, which is an interface."""
    return key.split("/")[3] if "/conf/" in key else key
