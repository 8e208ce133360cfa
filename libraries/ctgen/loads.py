"""The loads that a traffic generator can offer: a rate, a closed loop, or a number of connections held open."""

import math
from dataclasses import dataclass
from typing import ClassVar

from ctgen.profiles import PacketProfile, Profile


@dataclass(frozen=True)
class Rate:
    """A rate: connections or packets per second, as the profile counts."""

    per_s: float
    #: A trial that has lost more of these for certain may end: whatever comes, it is lost.
    most_lost: float = math.inf

    def __post_init__(self) -> None:
        if not 0 < self.per_s < math.inf:
            raise ValueError(f"An offered load of {self.per_s:g} per second is not possible. Expected more than 0.")


@dataclass(frozen=True)
class Hold:
    """A number of connections that are opened at a rate and then kept open."""

    connections: int
    #: Connections opened per second until all are open.
    opened_per_s: float
    #: How often each is asked something; None: not known in advance.
    asks: int | None = 1
    #: Seconds from the end of an opening to the first asking, at least, of a generator that has to know that before.
    asked_after_s: float = 1.0
    #: It has no schedule.
    per_s: ClassVar[float] = 0.0


@dataclass(frozen=True)
class Saturation:
    """A closed loop: `under_way` connections open (packets under way) at once; each that ends begins the next. The rate
    of completion is the rate at which the DUT serves."""

    under_way: int
    #: It has no schedule.
    per_s: ClassVar[float] = 0.0


Load = Rate | Hold | Saturation

#: What a closed loop has under way. One-message connections: enough for full batches on every receive queue, and few
#: enough that the DUT's tables of them stay in its caches, as they do at a rate that it sustains. Many messages: such
#: connections are open in their thousands at a rate, and finding each in a table that large is what the DUT is
#: measured by. Packets: full batches in both directions through all queues, and a ring that never fills.
_UNDER_WAY_SHORT, _UNDER_WAY_LONG, _UNDER_WAY_PACKETS = 512, 2048, 2048


def saturating(profile: Profile) -> Saturation:
    """Return the closed loop that saturates a DUT with this profile, without loss."""
    if isinstance(profile, PacketProfile):
        return Saturation(_UNDER_WAY_PACKETS)
    return Saturation(_UNDER_WAY_SHORT if profile.messages <= 1 else _UNDER_WAY_LONG)
