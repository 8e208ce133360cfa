"""What the entries of a connection table count, flowtables, and what a kernel says that has none."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.dut.abilities import Accounts
from ctbench.dut.linux import netfilter
from ctbench.dut.rulesets import find_ruleset
from ctbench.dut.table import read_accounts
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Completed
from ctbench.measure.procedure import Outcome
from ctbench.measure.procedures import accounting
from ctbench.measure.procedures.accounting import ACCOUNTING, OPEN
from ctbench.traffic.generator import Answered, Trial
from ctbench.traffic.loads import Hold
from ctbench.traffic.profiles import ConnectionProfile

from .simulated import made_up_trial
from .table_double import HoldingDouble, TableDouble, table_bench

LIMITS = {"uncounted": 0.0, "offloaded": 0.99, "forgotten_when_idle": 0.001}
#: Packets of a connection that each side sent: a handshake, and a question; with it another one.
SENT = {"client": 6 * OPEN, "server": 5 * OPEN}
FRAME = 66
#: What each is without the header of Ethernet.
COUNTED = {side: 52 * packets for side, packets in SENT.items()}


@dataclass
class Flowtable(TableDouble):
    """A router with a flowtable, and its generator."""

    limit: int = 100_000
    #: Connections that get into it; those that stay there; those that do not answer when they have left it.
    takes: int = OPEN
    stay: int = 0
    forgets: int = 0
    #: Packets of the clients, and bytes, that the entries do not count.
    misses: int = 0
    misses_bytes: int = 0
    silent: bool = False
    asked: int = 0
    looked: bool = False

    def accounts(self) -> Accounts:
        in_it = self.takes if self.asked == 1 and not self.looked else self.stay
        self.looked = True
        if self.silent:
            return Accounts(OPEN, in_it, {}, {})
        packets = {**SENT, "client": SENT["client"] - self.misses}
        return Accounts(OPEN, in_it, packets, {**COUNTED, "server": COUNTED["server"] - self.misses_bytes})

    def hold(self, profile: ConnectionProfile, load: Hold) -> "HeldThere":
        self.asked, self.looked = 0, False
        return HeldThere(self, load)


class HeldThere(HoldingDouble):
    dut: Flowtable

    def ask(self) -> Answered:
        self.dut.asked += 1
        if self.dut.asked > 1:
            self.dut.mute = self.dut.forgets
        return super().ask()

    def trial(self) -> Trial:
        back = {"client": SENT["server"], "server": SENT["client"]}
        return made_up_trial(OPEN, 1.0, loss=1 - (self.answered or 0) / OPEN).model_copy(
            update={
                "tx_packets": SENT,
                "total_tx_packets": SENT,
                "rx_packets": back,
                "total_rx_packets": back,
                "rx_bytes": {side: FRAME * packets for side, packets in back.items()},
            }
        )


def measured(dut: Flowtable) -> Outcome:
    topology = Topology(datapath="linux-router", ruleset="nftables-flowtable", timeout_s=60)
    return ACCOUNTING.run(table_bench(dut, topology=topology, limits=LIMITS))


def verdicts(found: Outcome) -> dict[str, bool | None]:
    return {name: each.kept for name, each in found.verdicts.items()}


def test_a_flowtable_that_counts_and_hands_back_is_met() -> None:
    dut = Flowtable()
    found = measured(dut)
    assert verdicts(found) == dict.fromkeys(LIMITS, True), found.reason
    assert {name: each.value for name, each in found.figures.items()} == {
        "uncounted": 0.0,
        "offloaded": 1.0,
        "forgotten_when_idle": 0.0,
    }
    assert dut.asked == 2 and [each.found for each in found.evidence.table] == [0, OPEN, OPEN]


@pytest.mark.parametrize(
    ("dut", "missed", "share"),
    [
        (Flowtable(misses=60), {"uncounted"}, 0.01),
        (Flowtable(misses=-60), {"uncounted"}, 0.01),
        (Flowtable(misses_bytes=2600), {"uncounted"}, 0.01),
        (Flowtable(silent=True), {"uncounted"}, 1.0),
        (Flowtable(takes=0), {"offloaded"}, 0.0),
        (Flowtable(forgets=2), {"forgotten_when_idle"}, 0.002),
        (Flowtable(stay=1), set(LIMITS), None),
        (Flowtable(mute=1), set(LIMITS), None),
        (Flowtable(miscount=-1), set(LIMITS), None),
    ],
    ids=[
        "loses counters", "counts twice", "loses bytes", "counts nothing", "brings nothing", "breaks idle connections",
        "hands none back", "breaks connections", "forgets entries",
    ],
)  # fmt: skip
def test_what_users_report_of_flowtables_is_missed(
    dut: Flowtable, missed: set[str], share: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounting, "IDLE_S", 0.01)
    found = measured(dut)
    assert {name for name, kept in verdicts(found).items() if kept is False} == missed, found.reason
    if share is not None:
        (name,) = missed
        assert found.figures[name].value == pytest.approx(share)


def test_frames_that_are_padded_on_their_way_are_counted_and_foreign_ones_are_not() -> None:
    trial = HeldThere(Flowtable(), Hold(OPEN, 1000.0)).trial()
    padded = {side: size + 6 * SENT[side] for side, size in COUNTED.items()}
    assert accounting.largest_deviation(trial, Accounts(OPEN, 0, SENT, padded)) == 0.0
    tagged = trial.model_copy(
        update={"rx_bytes": {side: size + 4 * trial.total_rx_packets[side] for side, size in trial.rx_bytes.items()}}
    )
    assert accounting.largest_deviation(tagged, Accounts(OPEN, 0, SENT, COUNTED), 18) == 0.0
    assert accounting.largest_deviation(tagged, Accounts(OPEN, 0, SENT, COUNTED)) > 0.0
    beside = {side: packets + 7 for side, packets in trial.total_rx_packets.items()}
    foreign = trial.model_copy(update={"total_rx_packets": beside, "unexpected": {"foreign": 7}})
    assert accounting.largest_deviation(foreign, Accounts(OPEN, 0, SENT, COUNTED)) == 0.0
    assert accounting.largest_deviation(foreign, Accounts(OPEN, 0, {**SENT, "server": 0}, COUNTED)) == 1.0


#: Seen with conntrack 1.4.7; the last one is of a ping.
TABLE = """\
tcp      6 src=16.0.0.1 dst=48.0.0.1 sport=1024 dport=8080 packets=3 bytes=164 src=48.0.0.1 dst=16.0.0.1 sport=8080 \
dport=1024 packets=2 bytes=112 [OFFLOAD] mark=0 use=3
udp      17 29 src=16.0.0.2 dst=48.0.0.1 sport=1024 dport=5353 packets=10 bytes=480 src=48.0.0.1 dst=16.0.0.2 \
sport=5353 dport=1024 packets=9 bytes=432 [ASSURED] mark=0 use=1
icmp     1 29 src=16.0.0.2 dst=48.0.0.1 type=8 code=0 id=1 packets=1 bytes=84 src=48.0.0.1 dst=16.0.0.2 type=0 code=0 \
id=1 packets=1 bytes=84 mark=0 use=1
"""


def test_what_entries_count_is_read_by_the_side_that_sent_it() -> None:
    found = read_accounts(TABLE.splitlines())
    assert found == Accounts(2, 1, {"client": 13, "server": 11}, {"client": 644, "server": 544})
    assert read_accounts(TABLE.replace("[OFFLOAD]", "[HW_OFFLOAD]").splitlines()) == found
    silent = read_accounts(["udp 17 29 src=1.1.1.1 dst=2.2.2.2 sport=1 dport=2 src=2.2.2.2 dst=1.1.1.1 sport=2"])
    assert (silent.entries, silent.packets) == (1, {})


def kernel(lacks: str) -> Any:
    """A host whose kernel takes no rules, or all of them but none with a flowtable."""

    def run(argv: Sequence[str], *_: Any, stdin: str = "", **__: Any) -> Completed:
        if any(lacks in word for word in (*argv, stdin)):
            return Completed(1, "", "Error: Could not process rule: No such file or directory\nflowtable\n^^^^\n")
        return Completed(0, "", "")

    return SimpleNamespace(run=run, name="the sandbox")


def test_a_kernel_without_flowtables_lacks_what_such_a_ruleset_needs_and_no_other_does() -> None:
    for lacking, name, error in (
        ("flowtable", "nftables-flowtable", MissingResource),
        ("table ip ctbench", "nftables-flowtable", TestbedError),
        ("table ip ctbench", "nftables-stateful", TestbedError),
    ):
        rules = netfilter.read_rules(find_ruleset(("nftables",), name, "a router"), ("r0", "r1"))
        with pytest.raises(error) as raised:
            netfilter.Netfilter(kernel(lacking)).load(rules)
        assert type(raised.value) is error
        assert ("CONFIG_NF_FLOW_TABLE" in str(raised.value)) is (error is MissingResource)


def test_the_flowtable_has_the_interfaces_of_every_pair_and_its_connections_are_counted() -> None:
    ruleset = find_ruleset(("nftables",), "nftables-flowtable", "a router")
    text = netfilter.read_rules(ruleset, ("r0", "r1", "r2", "r3"))
    assert text and "devices = { r0, r1 }; counter;" in text.text and "devices = { r2, r3 }; counter;" in text.text
    settings = netfilter.namespace_settings(netfilter.TABLE_SETTINGS, netfilter.LinuxConntrackKeys(), accounts=True)
    assert ruleset.accounts and settings["net/netfilter/nf_conntrack_acct"] == "1"
    others = netfilter.namespace_settings(netfilter.TABLE_SETTINGS, netfilter.LinuxConntrackKeys())
    assert others["net/netfilter/nf_conntrack_acct"] == "0"


@pytest.mark.parametrize(("timeout_s", "idle"), [(None, "5"), (60, "5"), (5, "2"), (1, "1")])
def test_what_is_handed_back_has_time_left(timeout_s: int | None, idle: str) -> None:
    table = netfilter.TABLE_SETTINGS.of(Topology(datapath="linux-router", timeout_s=timeout_s))
    found = netfilter.flowtable_settings(table)
    assert found == {f"net/netfilter/nf_flowtable_{protocol}_timeout": idle for protocol in ("tcp", "udp")}
