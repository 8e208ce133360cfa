"""Two pairs of ports of the real Open vSwitch and of the real kernel: both carry the load, and a cut one is named."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from real_duts import on_shared_cpus, set_up, without_loss
from wire import join

from ctbench.dut.linux.forwarding import LinuxRouterDut
from ctbench.dut.ovs.dpdk import MemifDevices
from ctbench.dut.ovs.dut import OvsDpdkDut
from ctbench.dut.ovs.instance import FOLDER
from ctbench.dut.topology import Topology
from ctbench.hosts.sandbox import Sandbox
from ctbench.measure.observation import Observation
from ctbench.traffic.loads import Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctgen import Generator, plan

pytestmark = pytest.mark.beside_others

CONNECTIONS = ConnectionProfile(name="short", client_ips=20, udp_percent=10)
PACKETS = PacketProfile(name="packets", kind="packets", flows=100, client_ips=20, directions="both")
AnyDut = OvsDpdkDut | LinuxRouterDut


@contextmanager
def with_two_pairs(kind: str, ruleset: str, sandbox: Sandbox, generator: Generator) -> Iterator[AnyDut]:
    topology = Topology(datapath=kind, ruleset=ruleset)
    made: AnyDut = (
        on_shared_cpus(OvsDpdkDut, sandbox, devices=MemifDevices(sandbox, FOLDER, pairs=2))
        if kind == "ovs-dpdk"
        else on_shared_cpus(LinuxRouterDut, sandbox, pairs=2)
    )
    for dut in set_up(made, topology):
        join(generator, dut.apply(topology))
        dut.begin_trial()
        yield dut
        generator.close()


@pytest.mark.parametrize(
    ("kind", "ruleset", "cut"),
    [
        ("ovs-dpdk", "conntrack", "no-forward"),
        ("linux-router", "nftables-snat", "route replace blackhole 48.1.0.0/16"),
    ],
)
def test_two_pairs_carry_the_load_and_the_one_that_is_cut_is_named(
    sandbox: Sandbox,
    generator: Generator,
    resting: None,
    kind: str,
    ruleset: str,
    cut: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with with_two_pairs(kind, ruleset, sandbox, generator) as dut:
        for profile in (CONNECTIONS, PACKETS):
            trial = without_loss(partial(generator.run_trial, profile, Rate(2_000), 0.2))
            assert [pair.attempted for pair in trial.port_pairs] == pytest.approx([200, 200], abs=4)
            assert trial.completed == trial.intended, (trial.failed, trial.unexpected)
        assert dut.connections() > 0
        if isinstance(dut, OvsDpdkDut):
            dut.control.ofctl("mod-port", dut.control.bridge, "4", cut)
        else:
            sandbox.run(["ip", *cut.split()])
        monkeypatch.setattr(plan, "REPLY_TIMEOUT_S", 0.5)
        trial = generator.run_trial(CONNECTIONS, Rate(2_000), 0.2)
        seen = Observation(trial, {"loss_ratio": 0.0002})
        first, second = trial.port_pairs
        assert (first.lost, second.completed) == (0, 0)
        assert ", on port pair 2 of 2" in seen.reason
