"""Whether the generator kept its schedule: what decides if a trial says anything about the DUT."""

from ctbench.traffic.generator import ATTEMPTED_LIMIT, Trial
from ctbench.traffic.software.schedule import CATCH_UP

#: Begun too late in more than this share of cases, and later than this share of the sustain phase: the generator did
#: not keep the pace, and the load was not the one that was asked for. What was only late is the harder trial, because
#: what is late comes faster; as it comes no more than a tenth faster, a pause of 4 ms makes late what is due in 44 ms.
LATE_RATIO_LIMIT = 0.2
LATEST_SHARE = 0.02
#: What a pause held back comes at once. Where that is more than this share of the DUT's rings, it may overrun them.
RING_SHARE = 0.25
#: What pauses held back, and so at most what came too fast, as a share of what was late: a pause makes eleven times as
#: much late as it holds back. Twice that, because what is late by less than the limit is not counted.
EXCESS = 2 * (1 - 1 / CATCH_UP)


#: In a closed loop: in so many of the looks at its own receive rings they may hold most of what is under way.
HELD_LIMIT = 0.5


def held_back(held: int, looks: int) -> str:
    """Why the generator limited a closed loop, in words; empty when it did not. `held`: looks at its own receive rings
    that found most of what was under way in them."""
    if looks and held > HELD_LIMIT * looks:
        return f"in {100 * held / looks:.0f} % of the time most of what was under way waited for the generator itself"
    return ""


def limited_by(trial: Trial) -> str:
    """Why the generator limited the trial, in words; empty when it did not."""
    late = f"up to {trial.late_max_ms:.1f} ms"
    if trial.attempted < trial.intended * ATTEMPTED_LIMIT:
        return f"{trial.attempted} of {trial.intended} {trial.unit} were begun in time ({late} late)"
    if trial.late_ratio > LATE_RATIO_LIMIT and trial.late_max_ms > LATEST_SHARE * trial.duration_s * 1000:
        return f"{100 * trial.late_ratio:.1f} % of the {trial.unit} began late, {late}"
    return ""


def disturbed_by(trial: Trial, dropped: int, ring_frames: int) -> str:
    """What of the generator may have cost what was lost, in words; empty where nothing did.

    `dropped`: frames that came back and found no room in the generator's receive rings; `ring_frames`: what the rings
    towards the DUT hold at a port. More than came too fast, or twice what the generator's own rings had no room for,
    was lost for other reasons.
    """
    lost = trial.packets_lost
    if not lost:
        return ""
    if dropped and lost <= 2 * dropped:
        return f"{dropped} frames came back and found the generator's own receive rings full"
    held_back = trial.late_max_ms / 1000 * max(trial.tx_packets.values()) / trial.counted_s
    if held_back > RING_SHARE * ring_frames and lost <= EXCESS * trial.late_ratio * trial.packets_sent:
        return (
            f"the generator paused for {trial.late_max_ms:.1f} ms: {held_back:.0f} packets came late and fast, the "
            f"DUT's rings hold {ring_frames}"
        )
    return ""
