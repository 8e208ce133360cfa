"""TRex releases that are known to be broken, in which set-ups, and what to use instead. docs/trex.md lists them too."""

from collections.abc import Set
from dataclasses import dataclass

from ctbench.hosts.machine import Finding, bad, ok, unknown

#: The row of the doctor.
WHAT = "TRex release"


#: Network cards by their names for people, each with the PCI numbers of vendor and device as lspci(8) writes them:
#: i40e_devids.h and ice_devids.h (drivers/net/intel) and mlx5_common.h of DPDK 25.07, which v3.08 contains. Virtual
#: functions of X710 have another driver.
I40E = "X710, XXV710, XL710 or X722 (i40e)"
E810 = "E810"
CONNECTX = "ConnectX-6 or ConnectX-7"
NUMBERS = {
    I40E: "8086:0cf8 8086:0d58 8086:0dd2 8086:0dda 8086:101f 8086:104e 8086:104f 8086:1572 8086:1574 8086:1580"
    " 8086:1581 8086:1583 8086:1584 8086:1585 8086:1586 8086:1587 8086:1588 8086:1589 8086:158a 8086:158b 8086:15ff"
    " 8086:37ce 8086:37cf 8086:37d0 8086:37d1 8086:37d2 8086:37d3",
    E810: "8086:1591 8086:1592 8086:1593 8086:1599 8086:159a 8086:159b",
    CONNECTX: "15b3:101b 15b3:101d 15b3:101f 15b3:1021",
}


@dataclass(frozen=True)
class Fault:
    """A known fault of some releases."""

    releases: tuple[str, ...]
    #: TRex' mode: ASTF (connections), STL (packets), or both.
    mode: str
    #: Where it is met: with `--software` only, with these cards only. Empty: with which, is not known.
    software: bool
    cards: str
    #: Whether it was tried release by release, or mended in TRex; else it is the word of one user.
    confirmed: bool
    happens: str
    remedy: str
    source: str

    def is_met(self, cards: Set[str] | None, software: bool | None) -> bool | None:
        """Return whether the fault affects a TRex that drives these cards by itself (PCI numbers; none on virtual
        ports), and runs with `--software` or not; None where that is not certain."""
        if self.software and software is False:
            return False
        if self.cards and cards is not None and not cards & set(NUMBERS[self.cards].split()):
            return False
        known = self.cards and cards is not None and (software is not None or not self.software)
        return True if known and self.confirmed else None

    def __str__(self) -> str:
        where = " with --software" * self.software + (f" on {self.cards}" if self.cards else "")
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
        ("v3.06",), "ASTF", software=False, cards="", confirmed=False,
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


def judge(release: str, cards: Set[str] | None, software: bool | None) -> Finding:
    """Return the doctor's row of a release such as `v3.08` (empty: not known). `cards`, `software`: as for
    `Fault.is_met`."""
    if not release:
        return unknown(WHAT, "not known, and so neither is what may be wrong with it")
    faults = {fault: fault.is_met(cards, software) for fault in FAULTS if release in fault.releases}
    met = [fault for fault, is_met in faults.items() if is_met]
    perhaps = [fault for fault, is_met in faults.items() if is_met is None]
    if met:
        return bad(WHAT, f"{release} {' and '.join(map(str, met))}", met[0].remedy)
    if perhaps:
        said = " and ".join(map(str, perhaps))
        return unknown(WHAT, f"{release} {said}; whether this testbed meets that is not known", perhaps[0].remedy)
    return ok(WHAT, f"{release}: nothing is known to be wrong with it on these ports")
