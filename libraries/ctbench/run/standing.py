"""The testbed in the hands of a run: set up for a test, asked what it says of a failure, replaced where it broke."""

from pathlib import Path

from ctbench.base.errors import TestbedError
from ctbench.base.unexpected import reraise_stop, sentence_of
from ctbench.dut.topology import Topology
from ctbench.results import captures, store
from ctbench.run.measurement import Measurement
from ctbench.run.telling import Say
from ctbench.testbed.pair import Setup
from ctbench.testbed.testbed import Testbed


class Standing:
    """What stands on a testbed for the test that runs."""

    def __init__(self, testbed: Testbed, output: Path, say: Say) -> None:
        """`output` gets what a DUT that failed says; `say` takes lines to show."""
        self.testbed = testbed
        self._output = output
        self._say = say

    def set_up(self, topology: Topology, now: Measurement, other: Setup | None = None) -> None:
        """Set `topology` up for the test `now`, or as a pair with the `other`; on a fresh DUT, which is said, where the
        one that stands is broken."""
        if replaced := self.testbed.replace_broken(topology):
            now.mishaps.append(f"Before it was set up for this test, a fresh DUT was needed: {replaced}")
            self._say(f"  a fresh DUT is needed: {replaced}")
        try:
            if other is None:
                self.testbed.apply(topology, now.profile)
            else:
                self.testbed.apply_pair(Setup(topology), other, now.profile)
        except TestbedError as error:
            beside = f" beside {other.topology.key}" if other else ""
            raise TestbedError(f"{topology.key} could not be set up{beside}: {error}") from error

    def capture(self, now: Measurement) -> None:
        """Keep what the DUT says of its failure, before it goes. What hinders that is a note, and hinders nothing."""
        try:
            if texts := self.testbed.capture():
                now.capture = captures.write(texts, self._output, store.slug(now.name.suite, now.name.test))
        except Exception as error:
            reraise_stop(error)
            now.mishaps.append(f"What the DUT says of its failure is not kept: {sentence_of(error, self._output)}")

    def begin_afresh(self) -> None:
        """Let go of whatever broke, and say what could not be put back."""
        for complaint in self.testbed.discard():
            self._say(f"  while the DUT was taken down: {complaint}")

    def version(self) -> str:
        """The version of the DUT: of Open vSwitch, or of the kernel."""
        facts = self.testbed.dut.snapshot()
        return str(facts.get("version") or facts.get("kernel") or "")
