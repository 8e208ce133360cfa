"""What stays of datagrams whose fragments do not all come.

A DUT that puts fragments together keeps those that came until it gives the others up: 15 s in Open vSwitch, which drops
them within 10 s more (lib/ipf.c), 30 s in Linux (net.ipv4.ipfrag_time). A load that is more than the DUT can take cuts
datagrams short. Then it has its time, with a light load of whole packets, as Open vSwitch looks at fragments where it
sees packets.
"""

import time

from ctbench.base.units import format_duration
from ctbench.dut.base import wait_until
from ctbench.measure.held import conclude
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import METRICS, PACKETS
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate, Saturation, saturating
from ctbench.traffic.profiles import PacketProfile

GONE = METRICS["reassembly_time"]
#: Of what the DUT serves: what it cannot take, and what it takes easily.
_TOO_MUCH, _EASY = 2.0, 0.25
#: Whole packets per second while fragments are given up.
_LIGHT = 20_000.0
_TRIAL_S = 1.0
#: Seconds after which fragments are not waited for any more.
PATIENCE_S = 60.0
#: Seconds that entries get beyond their timeout and the sweep.
_ENTRIES_S = 5.0


def _reassembly(bench: Bench, trials: Trials) -> Outcome:
    """The trial is the one after the fragments have gone, which has to lose nothing."""
    served = trials.offer(bench.runner, saturating(bench.profile), _TRIAL_S, "saturation")
    if served.state == "invalid":
        return Outcome.nothing(GONE, "generator", served.reason)
    dut, profile, generator, rate = bench.dut, bench.profile, bench.generator, served.served
    assert isinstance(profile, PacketProfile), "the metric is of packets"
    # Fragments right after the load; seconds until there were none, None where some stayed.
    kept, gone_s = 0, None

    def offer() -> Trial:
        nonlocal kept, gone_s
        whole = profile.model_copy(update={"fragments": 1, "frame_bytes": 64})
        generator.run_trial(profile, Rate(_TOO_MUCH * rate), _TRIAL_S)
        begun = time.monotonic()
        kept = left = dut.fragments()
        while left and time.monotonic() - begun < PATIENCE_S:
            generator.run_trial(whole, Rate(_LIGHT), _TRIAL_S)
            left = dut.fragments()
        gone_s = None if left else time.monotonic() - begun
        dut.begin_trial()
        return generator.run_trial(profile, Rate(_EASY * rate), _TRIAL_S)

    seen = trials.make("beside", lambda _number: bench.runner.watch(offer), _EASY * rate)
    if not kept:
        return Outcome.nothing(GONE, "generator", "no datagram was cut short: the DUT kept no fragment of any")
    wait_until(lambda: not dut.connections(), bench.timeout_s + dut.sweeps_within(bench.timeout_s) + _ENTRIES_S)
    entries = dut.connections()
    said = [
        seen.reason,
        f"{dut.fragments()} of {kept} fragments stayed for {PATIENCE_S:g} s" if gone_s is None else "",
        f"{entries} entries stayed beyond their timeout" if entries else "",
    ]
    wrong = "; ".join(filter(None, said))
    gone = f"{kept} fragments were gone after {format_duration(gone_s or 0.0)}, and entries by their timeout"
    return conclude(bench, seen, (GONE,), {GONE.name: gone_s}, wrong or gone, right=not wrong)


REASSEMBLY = Scripted(
    name="reassembly",
    says="offers more datagrams of several fragments than the device under test can take, waits until it keeps no "
    "fragment and no entry, and offers some again",
    found_out=(GONE.name,),
    script=_reassembly,
    loads=frozenset((Rate, Saturation)),
    abilities=frozenset({"fragments"}),
    promised=Promise("reassembly time", "table", "reassembly", PACKETS),
)
