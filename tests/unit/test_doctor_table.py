"""The doctor's examination as a whole, and its table."""

import locale
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.yaml_files import load
from ctbench.doctor import frames
from ctbench.doctor.examine import INDENT, MARKS, PLAIN_MARKS, Section, closing_line, examine, is_well, section_text
from ctbench.dut.base import DutCounts
from ctbench.dut.topology import Topology
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import bad, ok, unknown
from ctbench.measure import trial
from ctbench.testbed.config import TestbedConfig
from ctbench.traffic.generator import PortPair, Trial
from ctbench.traffic.loads import Rate

from .doctor_facts import example, plans
from .simulated import HealthyDut, made_up_packets

LONG = 'grubby --update-kernel=ALL --args="intel_iommu=on iommu=pt hugepagesz=1G hugepages=32 isolcpus=1-11" && reboot'
DASH = MARKS["unknown"]
SECTION = Section(
    "dut (root@dut.lab.example): ovs-dpdk",
    (ok("SSH", "fine"), bad("IOMMU", "off: " + "the cards are in no group, " * 8, LONG), unknown("NUMA", "one node")),
)


def unreachable(_pool: HostPool, _name: str) -> Mock:
    """Whatever is asked of it."""
    return Mock(run=Mock(side_effect=TestbedError("dut: root@dut.lab.example: Name or service not known.")))


def without_a_password(_pool: HostPool, name: str) -> Mock:
    raise ConfigError(f"{name}: the environment has no DUT_PASSWORD.")


def test_a_command_stands_whole_beneath_what_it_mends() -> None:
    lines = section_text(SECTION).splitlines()
    assert lines[0] == SECTION.title
    assert f"{' ' * INDENT}> {LONG}" in lines
    assert all(len(line) <= 120 for line in lines if LONG not in line)
    marks = list(MARKS.values())
    assert [line[2] for line in lines if line[2] in marks] == marks
    node = Section("dut", (ok("NUMA of 0000:18:00.2", "node 0"),))  # the longest label
    assert "0000:18:00.2 node 0" in section_text(node)
    assert "\x1b" not in section_text(SECTION) and "\x1b[31m✗\x1b[0m" in section_text(SECTION, colour=True)
    assert (section_text(SECTION, marks=PLAIN_MARKS) + closing_line([SECTION], PLAIN_MARKS)).isascii()


def test_the_last_line_counts_and_says_what_follows() -> None:
    assert closing_line([SECTION]) == f"1 ✓, 1 ✗, 1 {DASH}: fix what is ✗, then look again."
    well = Section("dut", (ok("SSH", "fine"),))
    assert closing_line([well]) == f"1 ✓, 0 ✗, 0 {DASH}: nothing is in the way of a run."
    assert (is_well([well]), is_well([well, SECTION])) == (True, False)


@pytest.mark.parametrize("connect", [unreachable, without_a_password])
def test_a_host_out_of_reach_is_a_row_and_others_are_looked_at(connect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(HostPool, "host", connect)
    dut, tgen, between = examine(example(), said.append)
    assert [dut.title, tgen.title] == ["dut (root@dut.lab.example): ovs-dpdk", "tgen (root@tgen.lab.example): TRex"]
    (row,) = dut.findings
    assert (row.state, row.what) == ("bad", "SSH")
    assert row.remedy.startswith("ssh root@dut.lab.example true")
    assert [finding.state for finding in between.findings] == ["ok", "ok"]  # the MAC addresses are all in the file
    assert said == ["looking at dut (root@dut.lab.example)", "looking at tgen (root@tgen.lab.example)"]


def test_how_a_host_is_reached_by_hand_is_as_the_file_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostPool, "host", unreachable)
    hosts = example().model_dump()["hosts"]
    hosts["dut"] |= {"port": 2222, "key": "~/.ssh/lab", "sudo": True}
    dut = next(iter(examine(example(hosts=hosts), lambda _: None)))
    assert dut.findings[0].remedy.startswith("ssh -p 2222 -i ~/.ssh/lab root@dut.lab.example sudo true")


def test_the_examples_hosts_are_those_of_the_article_and_sandboxes_are_this_machine() -> None:
    testbed, hosts = example(), plans()
    assert hosts["dut"].forwarding == (1, 2, 3, 4, 13, 14, 15, 16)
    assert (hosts["dut"].generating, hosts["dut"].others) == ((), (0, 12))
    assert (hosts["tgen"].forwarding, len(hosts["tgen"].generating), hosts["tgen"].others) == ((), 22, (0, 12))
    pmd, trex = testbed.cpus.pmd, testbed.generator
    assert isinstance(pmd, dict) and trex.type == "trex"
    masks = {count: hex(sum(1 << cpu for cpu in cpus)) for count, cpus in pmd.items()}
    assert masks == {1: "0x4", 2: "0x2002", 4: "0x6006", 8: "0x1e01e"}
    assert (trex.cores, len(trex.cpus), trex.rx_descriptors) == (22, 24, 4096)
    assert (trex.client.mac, trex.client.dest_mac) == (trex.server_port.dest_mac, trex.server_port.mac)
    assert trex.memory["mbuf_128"] == 500_000
    (plan,) = plans(load("testbeds", "local", TestbedConfig)).values()
    assert plan.roles == "ovs-dpdk, linux-router, linux-bridge, emulated, software generator"
    assert not plan.is_lab


@pytest.mark.parametrize(
    ("encoding", "marks"), [("UTF-8", MARKS), ("ANSI_X3.4-1968", PLAIN_MARKS), ("ARMSCII-8", PLAIN_MARKS)]
)
def test_something_to_mend_is_status_6_in_marks_that_the_terminal_can_show(
    encoding: str,
    marks: dict[str, str],
    status_of: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(HostPool, "host", unreachable)
    monkeypatch.setattr(locale, "getencoding", lambda: encoding)
    assert status_of("doctor", "example-trex-xeon") == 6
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out
    counts = "2 {ok}, 2 {bad}, 0 {unknown}: fix what is {bad}, then look again."
    assert printed.out.splitlines()[-1] == counts.format(**marks)
    assert "looking at" in printed.err


TWO_PAIRS = [PortPair(attempted=1, completed=1)] * 2


class Sending(HealthyDut):
    """A testbed, its DUT and its generator in one, in the place of real ones."""

    trial, counted = made_up_packets(back_loss=0.0), DutCounts({}, {})
    needs = ""

    def __init__(self, *_: Any) -> None:
        self.dut = self.generator = self

    def claim(self, _say: Any) -> None: ...

    def close(self) -> None: ...

    def apply(self, topology: Topology, *_: Any) -> None:
        if self.needs in topology.datapath:
            raise MissingResource(f"{topology.datapath} needs a CPU more.")

    def counts(self) -> DutCounts:
        return self.counted

    def run_trial(self, _profile: Any, load: Rate, duration_s: float) -> Trial:
        assert round(load.per_s * duration_s) == 2 * frames.FRAMES
        return self.trial


@pytest.mark.parametrize(
    ("changes", "state", "found"),
    [
        ({}, "ok", "100000 of 100000 from the client, 100000 of 100000 from the server came through"),
        (
            {"trial": made_up_packets(back_loss=0.0).model_copy(update={"port_pairs": TWO_PAIRS})},
            "ok",
            "100000 of 100000 from the client, 100000 of 100000 from the server came through, on all 2 pairs of",
        ),
        (
            {
                "trial": made_up_packets(loss=0.5, back_loss=0.0),
                "counted": DutCounts({}, {"client": 100_000, "server": 100_000}),
            },
            "bad",
            "the DUT sent 100000 frames",
        ),
        ({"trial": made_up_packets(loss=0.5, back_loss=0.0)}, "bad", "25.0 % of the packets were lost"),
        ({"trial": made_up_packets(back_loss=0.0, generator_limited="late")}, "unknown", "late"),
        ({"needs": "linux"}, "unknown", "not sent: linux-router needs a CPU more"),
    ],
)
def test_frames_that_are_sent_through_each_dut_are_compared_by_both_sides_counters(
    changes: dict[str, Any],
    state: str,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
    status_of: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(frames, "Testbed", type("Made", (Sending,), {"needs": "nothing"} | changes))
    monkeypatch.setattr(trial, "COUNTED_LATE_S", 0.0)
    local = load("testbeds", "local", TestbedConfig)
    section = frames.send(local, lambda _: None)
    assert [row.what for row in section.findings] == ["OVS-DPDK", "Linux router", "Linux bridge"]
    row = section.findings[1]
    assert row.state == state and row.found.startswith(found)
    monkeypatch.setattr("ctbench.cli.doctor.examine", lambda *_: iter(()))
    assert status_of("doctor", "--frames") == (6 if state == "bad" else 0)
    assert row.what in capsys.readouterr().out
