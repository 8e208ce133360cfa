"""Whether the generator kept its schedule: what decides if a trial says anything about the DUT."""

from dataclasses import dataclass

from ctbench.traffic.generator import ATTEMPTED_LIMIT

#: Begun too late in more than this share of cases: the generator did not keep the pace.
LATE_RATIO_LIMIT = 0.02


@dataclass(frozen=True)
class Pace:
    """How the generator did against its schedule in the sustain phase."""

    #: Connections or packets that were due, and begun.
    intended: int
    attempted: int
    #: Begun later than the limit (plan.LATE_LIMIT_S).
    late: int
    #: How late at worst, milliseconds.
    late_max_ms: float
    #: Frames that came back and found no room in the generator's receive rings.
    dropped: int

    @property
    def late_ratio(self) -> float:
        """Share of what was begun that was late."""
        return self.late / self.attempted if self.attempted else 0.0


def limited_by(pace: Pace, what: str) -> str:
    """Why the generator limited the trial, in words; empty when it did not. `what`: connections or packets."""
    if pace.dropped:
        return f"{pace.dropped} frames came back and found the generator's own receive rings full"
    if pace.attempted < pace.intended * ATTEMPTED_LIMIT:
        late = f"up to {pace.late_max_ms:.1f} ms late"
        return f"{pace.attempted} of {pace.intended} {what} were begun in time ({late})"
    if pace.late_ratio > LATE_RATIO_LIMIT:
        return f"{100 * pace.late_ratio:.1f} % of the {what} began late, up to {pace.late_max_ms:.1f} ms"
    return ""
