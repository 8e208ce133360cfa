"""The frame test of the doctor: frames through each DUT before anything is measured, and the counts of both sides."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from ctbench.base.errors import CtbenchError, MissingResource, TestbedError
from ctbench.doctor.examine import Section
from ctbench.dut import registry
from ctbench.dut.topology import Topology
from ctbench.hosts.machine import Finding, bad, ok, unknown
from ctbench.measure.trial import TrialRunner
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.testbed import Testbed
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import PacketProfile

TITLE = "frames through the device under test"
#: Frames each way, and seconds in which they are sent: so few a second that any DUT forwards them.
FRAMES, SECONDS = 1000, 0.2
PROFILE = PacketProfile(name="frames", kind="packets", flows=100, directions="both")


def send(config: TestbedConfig, say: Callable[[str], None]) -> Section:
    """Set up each kind of DUT to forward, send frames through it, and return the findings. Wait for the CPUs while a
    run measures there; send nothing where another run has claimed the hosts."""
    named = dict.fromkeys(dut.type for dut in config.duts)
    kinds = [kind for kind in named if "instructions" not in registry.abilities(kind)]
    with TemporaryDirectory(prefix="ctbench-doctor-") as logs, closing(Testbed(config, Path(logs))) as testbed:
        try:
            testbed.claim(say)
        except TestbedError as error:
            return Section(TITLE, (bad("frames", f"not sent: {error}".rstrip("."), "ask again once that has ended"),))
        return Section(TITLE, tuple(_sent(testbed, kind, say) for kind in kinds))


def _sent(testbed: Testbed, datapath: str, say: Callable[[str], None]) -> Finding:
    """Return the finding of one kind of DUT."""
    what = registry.title(datapath)
    say(f"sending frames through {what}")
    try:
        testbed.apply(Topology(datapath=datapath, ruleset="forward"), PROFILE)
        runner = TrialRunner(testbed.dut, testbed.generator, PROFILE, {"loss_ratio": 0.0})
        seen = runner.offer(Rate(2 * FRAMES / SECONDS), SECONDS)
    except MissingResource as error:
        return unknown(what, f"not sent: {error}".rstrip("."))
    except CtbenchError as error:
        return bad(what, str(error).rstrip("."), "see the sentence")
    if seen.good:
        ways = [f"{way.received} of {way.intended} from the {side}" for side, way in seen.trial.directions.items()]
        pairs = len(seen.trial.port_pairs)
        return ok(what, f"{', '.join(ways)} came through{f', on all {pairs} pairs of ports' * (pairs > 1)}")
    if seen.lost_elsewhere:
        return bad(what, seen.reason, "look at the cable, and at the card and the driver of who did not get them")
    if seen.state == "invalid" and not seen.fault:
        return unknown(what, seen.reason)
    return bad(what, seen.reason, "let it forward first: see its log, and its ports")
