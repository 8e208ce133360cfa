"""A software traffic generator: complete TCP and UDP connections, or streams of packets, over shared memory or network
interfaces.

`Generator` is the interface: `connect` it by a link, offer loads with `run_trial`, `run_slices` or `hold`, read a
`snapshot`, `close` it. Python plans a trial, joins the ports and reads the counters; the kernel, in C, sends and
receives every frame.
"""

from ctgen.errors import GeneratorError, Unavailable
from ctgen.generator import Generator
from ctgen.hold import HeldConnections
from ctgen.layout import MOST_PAIRS, MOST_THREADS, RECORD_BYTES
from ctgen.library import require_compiler, require_x86_64
from ctgen.links import Cable, Interfaces, Memif
from ctgen.loads import Hold, Load, Rate, Saturation, saturating
from ctgen.profiles import IMIX, PROBE_HEADERS, ConnectionProfile, PacketProfile, Profile, largest_frame, last_word
from ctgen.trial import (
    ATTEMPTED_LIMIT,
    Answered,
    Direction,
    Latency,
    LinkWork,
    LoadUnit,
    Opened,
    PortPair,
    Profiles,
    Side,
    Slice,
    Times,
    Traffic,
    Transport,
    Trial,
    UdpLatency,
)
from ctgen.wiring import Ends, Link

__all__ = [
    "ATTEMPTED_LIMIT",
    "IMIX",
    "MOST_PAIRS",
    "MOST_THREADS",
    "PROBE_HEADERS",
    "RECORD_BYTES",
    "Answered",
    "Cable",
    "ConnectionProfile",
    "Direction",
    "Ends",
    "Generator",
    "GeneratorError",
    "HeldConnections",
    "Hold",
    "Interfaces",
    "Latency",
    "Link",
    "LinkWork",
    "Load",
    "LoadUnit",
    "Memif",
    "Opened",
    "PacketProfile",
    "PortPair",
    "Profile",
    "Profiles",
    "Rate",
    "Saturation",
    "Side",
    "Slice",
    "Times",
    "Traffic",
    "Transport",
    "Trial",
    "UdpLatency",
    "Unavailable",
    "largest_frame",
    "last_word",
    "require_compiler",
    "require_x86_64",
    "saturating",
]
