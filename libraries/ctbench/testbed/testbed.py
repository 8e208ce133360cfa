"""The testbed: the object that holds a DUT and a traffic generator and joins them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.ethernet import CLIENT_MAC, SERVER_MAC
from ctbench.base.unexpected import reraise_stop, sentence_of
from ctbench.dut.base import Dut
from ctbench.dut.cable import CABLE, Cable
from ctbench.dut.kind import Surroundings
from ctbench.dut.registry import KINDS, DutConfig
from ctbench.dut.topology import Topology
from ctbench.dut.veth_cable import VethCable
from ctbench.hosts.base import Host
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.hosts.connections import HostPool, machine_of
from ctbench.hosts.machine import Machine, Placement
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connector import Joint, SoftwareJoint
from ctbench.testbed.cpu_placement import plan_cpus
from ctbench.testbed.trex_connector import TrexJoint
from ctbench.traffic.config import TrexGeneratorConfig
from ctbench.traffic.generator import TrafficGenerator
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile


class Testbed:
    """One DUT at a time and one generator. `apply` sets both up; `close` leaves nothing behind."""

    __test__ = False  # not a pytest class

    def __init__(self, config: TestbedConfig, output: Path) -> None:
        """Nothing is started before the first `apply`. Logs of DUT and generator go below `output`."""
        self.config = config
        self._output = output
        self._hosts = HostPool(config.hosts)
        #: Each with the host that it is on.
        self._duts: dict[str, tuple[Dut, Host]] = {}
        self._generator: Joint | None = None
        self._joined: Dut | None = None
        #: The DUT that is set up, joined or not.
        self._standing: Dut | None = None
        #: DUTs that were let go of and could not put their host back as it was.
        self._not_restored: list[Dut] = []

    @property
    def machine(self) -> Machine:
        """The machine that generates the traffic: of a testbed without a lab, the DUT's too."""
        return self._hosts.machine(self._generator_host)

    @property
    def generator(self) -> TrafficGenerator:
        """The traffic generator."""
        return self._joint.generator

    @property
    def dut(self) -> Dut:
        """The DUT that was set up last."""
        if self._joined is None:
            raise TestbedError("No topology is applied yet.")
        return self._joined

    def placement(self, topology: Topology) -> Placement:
        """Who runs where on the DUT's machine: what the testbed file says, else what suits the machine.
        `MissingResource` when short."""
        host = self._generator_host if topology.datapath == CABLE.datapath else self._config_of(topology.datapath).host
        beside = machine_of(host) == machine_of(self._generator_host)
        return plan_cpus(
            self.config.cpus,
            self._hosts.machine(host),
            topology.cpus,
            generator_cpus=self.config.generator.cpus_needed if beside else 0,
            shared=self.config.oversubscribe,
        )

    def apply(self, topology: Topology, profile: ConnectionProfile | PacketProfile | None = None) -> None:
        """Set the DUT up as `topology` and join the generator to it, with buffers large enough for `profile`.

        Raises `MissingResource` when this testbed lacks what the topology needs, `TestbedError` when the DUT does
        not become what was asked for.
        """
        from ctbench.traffic.software.generator import largest_frame  # noqa: PLC0415 - with numba, see connector

        self._joined = None
        dut, host = self._dut(topology.datapath)
        if not isinstance(dut, Cable):  # which needs nothing that another DUT could take away
            self._make_way_for(dut)
        placement = self.placement(topology)
        self._joint.part()
        try:
            ports = dut.apply(topology)
            self._joint.join(ports, host, placement, largest_frame(profile) if profile else 1514)
        except TestbedError as error:
            if trouble := dut.trouble():  # which says more than what noticed it
                raise TestbedError(trouble) from error
            raise
        self._joined = dut

    def replace_broken(self, topology: Topology) -> str:
        """Let go of the DUT of this topology where it is broken since it was used last, so that `apply` makes a fresh
        one. Returns what is broken, in one sentence; empty where nothing is."""
        if topology.datapath not in self._duts:
            return ""
        dut, _ = self._duts[topology.datapath]
        if not (trouble := dut.trouble()):
            return ""
        return " ".join([trouble, *self._try_to(self._joint.part), *self._let_go_of(dut)])

    def discard(self) -> list[str]:
        """Let go of generator and DUT in whatever state they are, with the DUT's sandbox where it has one: the next
        `apply` makes fresh ones. Returns a sentence for each thing that could not be put back."""
        complaints = self._try_to(self._generator.close) if self._generator else []
        for dut in (self._joined, self._standing):
            complaints += self._let_go_of(dut) if dut else []
        self._joined = self._standing = None
        return complaints

    def facts(self) -> dict[str, dict[str, Any]]:
        """What the figures depend on: testbed file, DUT (with its machine), generator, the generator's machine. What
        cannot be asked any more says why."""
        return {
            "testbed": self.config.model_dump(mode="json"),
            "dut": _told(self._joined.snapshot) if self._joined else {},
            "generator": _told(self._joint.facts),
            "machine": _told(lambda: dict(self.machine.as_record())),
        }

    def close(self) -> None:
        """Let go of everything, whatever of it is broken. May be called twice. `TestbedError` says what could not be
        put back."""
        complaints = self.discard()
        for dut, _ in list(self._duts.values()):
            complaints += self._let_go_of(dut)
        while self._not_restored:  # its host may answer again
            complaints += self._try_to(self._not_restored.pop().restore)
        complaints += self._try_to(self._hosts.close)
        if complaints:
            raise TestbedError(" ".join(complaints))

    def _let_go_of(self, dut: Dut) -> list[str]:
        """Put a DUT's host back as it was; what is in a sandbox goes with it, however it is."""
        for datapath in [name for name, (known, _) in self._duts.items() if known is dut]:
            _, host = self._duts.pop(datapath)
            complaints = self._try_to(dut.restore)
            if isinstance(host, Sandbox):
                return self._try_to(partial(self._hosts.discard, host))
            if complaints:
                self._not_restored.append(dut)
            return complaints
        return []

    def _try_to(self, take_down: Callable[[], None]) -> list[str]:
        """Take something down; what hinders that is returned, and no reason to leave the rest."""
        try:
            take_down()
        except Exception as error:
            reraise_stop(error)
            return [sentence_of(error, self._output)]
        return []

    @property
    def _generator_host(self) -> str:
        return self.config.generator.host

    @property
    def _joint(self) -> Joint:
        if self._generator is None:
            config = self.config.generator
            if isinstance(config, TrexGeneratorConfig):
                self._generator = TrexJoint(config, self.config.hosts, self._hosts, self._output / "generator")
            else:
                self._generator = SoftwareJoint(self.placement(CABLE).generator, self.config.name)
        return self._generator

    def _make_way_for(self, dut: Dut) -> None:
        """Let another DUT go: its threads would take the CPUs that both are given."""
        if self._standing is not None and self._standing is not dut:
            self._joint.part()
            standing = self._standing
            if self._try_to(standing.restore) and (complaints := self._let_go_of(standing)):
                raise TestbedError(" ".join(complaints))
        self._standing = dut

    def _dut(self, datapath: str) -> tuple[Dut, Host]:
        if datapath not in self._duts:
            self._duts[datapath] = self._new_dut(datapath)
        return self._duts[datapath]

    def _new_dut(self, datapath: str) -> tuple[Dut, Host]:
        if datapath == CABLE.datapath:
            return self._cable()
        config = self._config_of(datapath)
        host = self._hosts.host(config.host)
        around = Surroundings(
            host, self._hosts.machine(config.host), self.placement, self._output / "dut", self._macs,
            generator_carries=self.config.generator.carries,
        )  # fmt: skip
        return KINDS[datapath].build(config, around), host

    def _config_of(self, datapath: str) -> DutConfig:
        for config in self.config.duts:
            if config.type == datapath:
                return config
        known = ", ".join(config.type for config in self.config.duts)
        raise MissingResource(f"A DUT with datapath {datapath} is needed; testbed {self.config.name} has {known}.")

    def _cable(self) -> tuple[Dut, Host]:
        if self.config.generator.type == "software":
            return Cable(), self._hosts.host(LOCAL)
        if self._generator_host != SANDBOX:
            raise MissingResource(
                f"The ports of TRex on {self._generator_host} are cabled to the DUT, and not to each other: what the"
                " generator does without a DUT cannot be measured there."
            )
        host = self._hosts.sandbox()
        return VethCable(host), host

    def _macs(self) -> tuple[str, str]:
        """Ethernet addresses of the generator's ports in a lab: a Linux DUT does not ask for them."""
        generator = self.config.generator
        if not isinstance(generator, TrexGeneratorConfig):
            return CLIENT_MAC, SERVER_MAC
        macs = (generator.client.mac, generator.server_port.mac)
        if not all(macs):
            raise ConfigError(
                f"testbed {self.config.name}: generator.client.mac and generator.server_port.mac are needed for a Linux"
                " DUT.\n  Expected the MAC addresses that TRex' ports send from."
            )
        return macs


def _told(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What something says of itself; in the record of a measurement that broke off it may be past saying anything."""
    try:
        return ask()
    except Exception as error:
        reraise_stop(error)
        return {"trouble": f"it could not be asked: {error}"}
