"""Releases of TRex that are known to be broken, in which set-up, and what to use instead. docs/trex.md has them too."""

from collections.abc import Set
from dataclasses import dataclass

from ctbench.hosts.machine import Finding, bad, ok, unknown

#: The row of the doctor.
WHAT = "TRex release"


@dataclass(frozen=True)
class Cards:
    """Network cards that one fault is about."""

    name: str
    #: PCI numbers of vendor and device, as lspci(8) writes them.
    numbers: frozenset[str]


def _cards(name: str, vendor: str, devices: str) -> Cards:
    return Cards(name, frozenset(f"{vendor}:{device}" for device in devices.split()))


#: drivers/net/intel/i40e/base/i40e_devids.h of DPDK 25.07, which v3.08 contains; virtual functions have another driver.
I40E = _cards(
    "X710, XXV710, XL710 or X722 (i40e)",
    "8086",
    "0cf8 0d58 0dd2 0dda 101f 104e 104f 1572 1574 1580 1581 1583 1584 1585 1586 1587 1588 1589 158a 158b 15ff 37ce 37cf"
    " 37d0 37d1 37d2 37d3",
)
#: drivers/net/intel/ice/base/ice_devids.h.
E810 = _cards("E810", "8086", "1591 1592 1593 1599 159a 159b")
#: drivers/common/mlx5/mlx5_common.h.
CONNECTX = _cards("ConnectX-6 or ConnectX-7", "15b3", "101b 101d 101f 1021")


@dataclass(frozen=True)
class SetUp:
    """What decides whether a testbed meets a fault; None where that is not known."""

    #: PCI numbers of the cards that TRex drives itself; none on virtual ports.
    cards: Set[str] | None
    #: Whether TRex runs with `--software`.
    software: bool | None


@dataclass(frozen=True)
class Fault:
    """What is known to be wrong with some releases."""

    releases: tuple[str, ...]
    #: TRex' mode: ASTF (connections), STL (packets), or both.
    mode: str
    #: Where it is met: with `--software` only, with these cards only. None: with which, is not known.
    software: bool
    cards: Cards | None
    #: Whether it was tried release by release, or mended in TRex; else it is the word of one user.
    confirmed: bool
    happens: str
    remedy: str
    source: str

    def is_met(self, by: SetUp) -> bool | None:
        """None where that is not known."""
        if self.software and by.software is False:
            return False
        if self.cards and by.cards is not None and not self.cards.numbers & by.cards:
            return False
        known = self.cards and by.cards is not None and (by.software is not None or not self.software)
        return True if known and self.confirmed else None

    def __str__(self) -> str:
        where = " with --software" * self.software + (f" on {self.cards.name}" if self.cards else "")
        return f"{self.happens} in {self.mode}{where} ({self.source})"


FAULTS = (
    # v3.04 to v3.08 were tried one by one, and Red Hat's bench-trafficgen pins v3.04 for ASTF. TRex takes the queues in
    # question, MULTI_QUE, where `--software` forbids it the card's filters (trex_modes.cpp, choose_mode).
    Fault(
        ("v3.05", "v3.06", "v3.07", "v3.08"), "ASTF", software=True, cards=I40E, confirmed=True,
        happens="takes no frames on its server port",
        remedy="leave --software out (generator.software: false), or use TRex v3.04 for connections",
        source="trex-core issue 1221",
    ),
    # The report names no card; v3.02 was well there.
    Fault(
        ("v3.06",), "ASTF", software=False, cards=None, confirmed=False,
        happens="was reported to send on one of its ports only",
        remedy="use another release for connections",
        source="trex-core issue 1149",
    ),
    # A driver in hardware mode came with v3.07 (release notes).
    Fault(
        ("v3.04", "v3.05"), "ASTF and STL", software=False, cards=E810, confirmed=False,
        happens="was reported to send nothing",
        remedy="use TRex v3.03, or v3.07 or newer",
        source="trex-core issues 1110 and 1136",
    ),
    # Mended in v3.05: pull request 1106.
    Fault(
        ("v3.04",), "ASTF and STL", software=False, cards=CONNECTX, confirmed=True,
        happens="counts wrongly",
        remedy="use TRex v3.05 or newer",
        source="trex-core issues 1091 and 1101",
    ),
)  # fmt: skip


def judge(release: str, setup: SetUp) -> Finding:
    """The doctor's row of a release such as `v3.08`, empty where it is not known."""
    if not release:
        return unknown(WHAT, "not known, and so neither is what may be wrong with it")
    faults = {fault: fault.is_met(setup) for fault in FAULTS if release in fault.releases}
    met = [fault for fault, is_met in faults.items() if is_met]
    perhaps = [fault for fault, is_met in faults.items() if is_met is None]
    if met:
        return bad(WHAT, f"{release} {' and '.join(map(str, met))}", met[0].remedy)
    if perhaps:
        said = " and ".join(map(str, perhaps))
        return unknown(WHAT, f"{release} {said}; whether this testbed meets that is not known", perhaps[0].remedy)
    return ok(WHAT, f"{release}: nothing is known to be wrong with it on these ports")
