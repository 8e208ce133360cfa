"""States of emulated machines that are ready for a topology. A machine is booted once for each seed, up to where
guest/await.c stops it; what is measured starts from its state, which is in the sandbox's own memory."""

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.emulated import machine
from ctbench.dut.emulated.image import Image
from ctbench.dut.emulated.log import read_log
from ctbench.dut.emulated.machine import Start
from ctbench.dut.emulated.monitor import Monitor
from ctbench.hosts.base import Host

#: What a state takes besides what is booted, which is in the machine's memory twice: as an archive, and as files.
_REST_MB = 80
#: No limit, bytes a second: the machine waits.
_FASTEST = 1 << 40


@dataclass(frozen=True)
class _Boot:
    """A machine that boots, and is saved when it is ready. Files are as the sandbox reaches them."""

    kernel: str
    archive: str
    #: An argument that the kernel does not know: it seeds the hash functions by all of its arguments.
    seed: int
    state: str
    given: bytes = b"\n"

    @property
    def arguments(self) -> Sequence[str]:
        """See `Asked`."""
        append = f"{machine.KERNEL} ctbench.seed={self.seed:04d}"
        files = ("-kernel", self.kernel, "-initrd", self.archive)
        return (*files, "-append", append, "-action", "panic=pause", "-serial", "null")

    def talk(self, monitor: Monitor) -> bool:
        """See `Asked`."""
        status = (monitor.ask("query-status") or {}).get("status")
        migration = monitor.ask("query-migrate") or {}
        if migration.get("status") == "failed":
            why = migration.get("error-desc", "no reason is given")
            raise TestbedError(f"The state of an emulated machine could not be saved: {why}.")
        if status == machine.WAITS and not migration:
            monitor.ask("migrate-set-parameters", **{"max-bandwidth": _FASTEST})
            monitor.ask("migrate", uri=f"exec:cat >{self.state}")
        return status == "postmigrate" and monitor.ask("quit") is not None


class States:
    """The states of one image, by seed."""

    def __init__(self, host: Host, image: Image, longest_s: float = machine.LONGEST_S) -> None:
        """Nothing is booted before it is asked for; `longest_s`: of a boot, seconds."""
        self._host = host
        self._image = image
        self._longest_s = longest_s
        self._folder = Path(tempfile.mkdtemp(prefix="ctbench-states-", dir=host.local_path(machine.PRIVATE)))
        self._kernel = self._folder / "kernel"
        shutil.copyfile(image.kernel.image, self._kernel)  # one that was unpacked has another path inside
        #: The one that was saved first stands first.
        self._saved: dict[int, Path] = {}

    def ready(self, seeds: Sequence[int], at_once: int) -> dict[int, Start]:
        """Machines that start from the states of these seeds, or of as many of them as there is memory for.
        `MissingResource` where one does not fit, `TestbedError` where a machine does not get ready."""
        missing = [seed for seed in seeds if seed not in self._saved][:at_once]
        if missing and (room := self._room(seeds)):
            self._save(missing[:room])
        here = {seed: self._saved[seed] for seed in seeds if seed in self._saved}
        return {seed: Start(self._inside(self._kernel), self._inside(state)) for seed, state in here.items()}

    def close(self) -> None:
        """Forget them all."""
        self._saved.clear()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _inside(self, file: Path) -> str:
        """A file as the sandbox reaches it."""
        return f"{machine.PRIVATE}/{self._folder.name}/{file.name}"

    def _room(self, wanted: Sequence[int]) -> int:
        """How many more there is memory for; others make way for the first one. Files may take a part of the memory."""
        archive_mb = len(self._image.whole) >> 20
        state_mb = 2 * archive_mb + _REST_MB
        while True:
            files = os.statvfs(self._folder)
            files_mb = (files.f_bavail * files.f_frsize >> 20) - archive_mb
            try:
                fit = machine.fitting(self._host, machine.MEMORY_MB + machine.OWN_MB + state_mb)
                if files_mb < state_mb:
                    raise MissingResource(
                        f"An emulated machine needs {state_mb} MB for its state, and files may take {files_mb} MB."
                    )
                return min(fit, files_mb // state_mb)
            except MissingResource:
                if any(seed in self._saved for seed in wanted):
                    return 0
                if not self._saved:
                    raise
                self._saved.pop(next(iter(self._saved))).unlink()

    def _save(self, seeds: Sequence[int]) -> None:
        archive, states = self._folder / "archive", {seed: self._folder / f"{seed}.state" for seed in seeds}
        try:
            archive.write_bytes(self._image.whole)
            asked = [
                _Boot(self._inside(self._kernel), self._inside(archive), seed, self._inside(state))
                for seed, state in states.items()
            ]
            for seed, ended in zip(seeds, machine.run_all(self._host, asked, len(asked), self._longest_s), strict=True):
                if ended.trouble or not ended.told:
                    trouble = ended.trouble or read_log(ended.said).trouble
                    raise TestbedError(f"The emulated machine did not get ready (seed {seed}): {trouble}.")
            self._saved |= states
        finally:
            archive.unlink(missing_ok=True)
            for seed in states.keys() - self._saved.keys():
                states[seed].unlink(missing_ok=True)
