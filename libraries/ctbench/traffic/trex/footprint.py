"""What a TRex server that we start leaves on its host, processes and files: found again by a later run."""

import re
import secrets
import time

from ctbench.base.errors import GeneratorError
from ctbench.hosts.base import Host
from ctbench.traffic.trex.owner import Owner

#: Seconds that TRex gets to end by itself; it gives back its memory first.
END_TIMEOUT_S = 10.0
#: Seconds between two looks at whether it has ended.
POLL_S = 0.05
#: Below /run, which is a sandbox's own; TRex needs root anyway.
PARENT = "/run"


class Footprint:
    """A folder on the host whose name stands in the command line of all the server's processes, and in nobody else's:
    root sees the processes of sandboxes too, so the name is new for each."""

    def __init__(self, host: Host, name: str, dpdk_name: str = "", folder: str = "") -> None:
        """`name`: what servers have in common that cannot run side by side; `dpdk_name`: what DPDK calls it, which
        leaves files of that name whether it ends or is killed; `folder`: one that is there already."""
        self._host = host
        self._name = name
        self._dpdk_name = dpdk_name
        self.folder = folder or f"{PARENT}/ctbench-trex-{name}-{secrets.token_hex(4)}"

    @property
    def config(self) -> str:
        """Path of the server's configuration, the argument by which its processes are known."""
        return f"{self.folder}/trex_cfg.yaml"

    def claim(self, config: str) -> None:
        """Make the folder, with the configuration in it and a note whose it is."""
        self._host.run(["mkdir", "-p", self.folder])
        self._host.run(["tee", self._note], stdin=str(Owner.myself()))
        self._host.run(["tee", self.config], stdin=config)

    def end_abandoned(self) -> None:
        """End what a run of this name left behind that was killed; `GeneratorError` when that run still goes on."""
        pattern = f"ctbench-trex-{self._name}-*"
        found = self._host.run(["find", PARENT, "-maxdepth", "1", "-name", pattern], check=False).stdout.split()
        for folder in found:
            Footprint(self._host, self._name, self._dpdk_name, folder)._end_if_abandoned()

    def end(self) -> None:
        """Interrupt the server, kill it when that is not enough, and remove its files."""
        for signal in ("-INT", "-KILL"):
            if pids := self._pids():
                self._host.run(["kill", signal, *pids], check=False)  # one may have ended meanwhile
            if self._have_ended():
                break
        else:
            raise GeneratorError(f"{self._host.name}: the TRex server (process {' '.join(self._pids())}) does not end.")
        files = [self.folder, *[f"/var/run/dpdk/{self._dpdk_name}"] * bool(self._dpdk_name)]
        self._host.run(["rm", "-rf", *files])

    @property
    def _note(self) -> str:
        """Path of the file that says whose it is."""
        return f"{self.folder}/owner"

    def _end_if_abandoned(self) -> None:
        owner = Owner.parse(self._host.run(["cat", self._note], check=False).stdout)
        if owner and not owner.is_gone() and (pids := self._pids()):
            raise GeneratorError(
                f"{self._host.name}: a TRex server runs there (process {' '.join(pids)}) for another run, process "
                f"{owner.pid} of {owner.machine}: wait until that ends, or end it."
            )
        self.end()

    def _have_ended(self) -> bool:
        deadline = time.monotonic() + END_TIMEOUT_S
        while self._pids():
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_S)
        return True

    def _pids(self) -> list[str]:
        # From the beginning of the command line: what carries TRex to a host across SSH has it as arguments.
        pattern = rf"^([^ ]*bash )?[^ ]*t-rex-64 .*{re.escape(self.config)}"
        return self._host.run(["pgrep", "-f", pattern], check=False).stdout.split()
