"""Reassembly: the fragments, entries and memory that stay of datagrams whose fragments do not all arrive.

A DUT that reassembles keeps the fragments of an incomplete datagram until a timeout: 15 s in Open vSwitch, which drops
them within 10 s more (lib/ipf.c), 30 s in Linux (net.ipv4.ipfrag_time). An overload makes datagrams incomplete. A light
load of whole packets follows until the fragments are gone, as Open vSwitch checks fragments when it sees packets. Both
are done three times: memory that is not freed grows each time.
"""

import time
from itertools import pairwise

from ctbench.base.units import format_duration
from ctbench.dut.base import wait_until
from ctbench.measure.held import conclude
from ctbench.measure.procedure import Bench, Outcome, Promise, Scripted
from ctbench.measure.trial import Trials
from ctbench.results.metrics import METRICS, PACKETS
from ctbench.traffic.generator import Trial
from ctbench.traffic.loads import Rate, Saturation, saturating
from ctbench.traffic.profiles import PacketProfile

GONE, KEPT = METRICS["reassembly_time"], METRICS["fragment_memory_kept"]
#: How often datagrams are cut short.
TIMES = 3
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
    """Measure reassembly. The judged trial follows when the fragments have gone, and has to keep the loss limit."""
    served = trials.offer(bench.runner, saturating(bench.profile), _TRIAL_S, "saturation")
    if served.state == "invalid":
        return Outcome.nothing(GONE, "generator", served.reason)
    dut, profile, generator, rate = bench.dut, bench.profile, bench.generator, served.served
    assert isinstance(profile, PacketProfile), "the metric is of packets"
    whole = profile.model_copy(update={"fragments": 1, "frame_bytes": 64})
    # Each time: fragments right after the load; seconds until there were none; and memory then, where it is known.
    kept: list[int] = []
    gone_s: list[float] = []
    memory: list[int] = []
    stayed = 0

    def cut_short() -> bool:
        """Cut datagrams short once. Return whether the DUT kept fragments, and they have gone."""
        nonlocal stayed
        generator.run_trial(profile, Rate(_TOO_MUCH * rate), _TRIAL_S)
        begun = time.monotonic()
        kept.append(left := dut.fragments())
        while left and time.monotonic() - begun < PATIENCE_S:
            generator.run_trial(whole, Rate(_LIGHT), _TRIAL_S)
            left = dut.fragments()
        stayed = left
        if left:
            return False
        gone_s.append(time.monotonic() - begun)
        if (taken := dut.table_memory()) is not None:
            memory.append(taken)
        return kept[-1] > 0

    def offer() -> Trial:
        for each in (kept, gone_s, memory):
            each.clear()  # of a trial that was invalid
        while len(gone_s) < TIMES and cut_short():
            pass
        dut.begin_trial()
        return generator.run_trial(profile, Rate(_EASY * rate), _TRIAL_S)

    seen = trials.make("beside", lambda _number: bench.runner.watch(offer), _EASY * rate)
    if not any(kept):
        return Outcome.nothing(GONE, "generator", "no datagram was cut short: the DUT kept no fragment of any")
    wait_until(lambda: not dut.connections(), bench.timeout_s + dut.sweeps_within(bench.timeout_s) + _ENTRIES_S)
    entries = dut.connections()
    said = [
        seen.reason,
        f"{stayed} of {kept[-1]} fragments stayed for {PATIENCE_S:g} s" if stayed else "",
        f"{entries} entries stayed beyond their timeout" if entries else "",
    ]
    wrong = "; ".join(filter(None, said))
    longest_s = None if stayed else max(gone_s)
    gone = f"{max(kept)} fragments were gone after {format_duration(longest_s or 0.0)}, and entries by their timeout"
    values, metrics = {GONE.name: longest_s}, [GONE]
    if len(memory) == TIMES:
        # What a DUT makes once is none of it.
        grown = min(now - before for before, now in pairwise(memory))
        values[KEPT.name] = max(0, grown) / max(kept)
        metrics.append(KEPT)
    return conclude(bench, seen, metrics, values, wrong or gone, right=not wrong)


REASSEMBLY = Scripted(
    name="reassembly",
    says="offers more datagrams of several fragments than the device under test can take, and waits until it keeps no "
    "fragment, three times; then it keeps no entry either, and loses none of a few",
    found_out=(GONE.name, KEPT.name),
    script=_reassembly,
    loads=frozenset((Rate, Saturation)),
    abilities=frozenset({"fragments"}),
    promised=Promise("reassembly time", "table", "reassembly", PACKETS),
)
