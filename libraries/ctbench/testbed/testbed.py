"""The testbed: the object that holds a DUT and a traffic generator and connects them."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ctbench.base.errors import ConfigError, MissingResource, TestbedError, reraise_stop, sentence_of
from ctbench.dut.abilities import Counter
from ctbench.dut.base import Dut, Ports, blaming_the_dead
from ctbench.dut.cable import CABLE
from ctbench.dut.kind import Surroundings
from ctbench.dut.registry import KINDS
from ctbench.dut.topology import Topology
from ctbench.hosts.base import Host
from ctbench.hosts.claims import FOLDER, Claim, folders_of
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.hosts.connections import HostPool, machine_of
from ctbench.hosts.machine import Placement
from ctbench.hosts.sandbox import Sandbox
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.connectors.connector import Connector
from ctbench.testbed.connectors.software import SoftwareConnector
from ctbench.testbed.connectors.trex import TrexConnector
from ctbench.testbed.cpus import plan_cpus
from ctbench.testbed.pool import cpus_for_itself, hosts_for_itself
from ctbench.testbed.two_sides import InTurn, Setup, SideBySide, at_once, trouble_of, unlike
from ctbench.traffic.generator import PairedGenerator, Side, TrafficGenerator
from ctbench.traffic.loads import Load
from ctbench.traffic.profiles import Profile, largest_frame

#: How each kind of traffic source is connected to a DUT: an entry for each of `GeneratorConfig`.
CONNECTORS: dict[str, type[Connector]] = {"software": SoftwareConnector, "trex": TrexConnector}
_SIDES: tuple[Side, Side] = ("tested", "other")
#: DUTs of a kind that stand at the same time at most: a pair. One that is paused keeps its memory.
_MOST_STANDING = 2


@dataclass(frozen=True)
class Place:
    """The key of one DUT of a testbed."""

    datapath: str
    #: Prefix of its installation, where it is another one than the testbed file says.
    build: str = ""
    #: Whether it is the second one of the same installation.
    beside: bool = False


class Testbed:
    """One traffic generator, and one DUT at a time or a pair. `apply` and `apply_pair` set them up; `close` removes
    all."""

    def __init__(self, config: TestbedConfig, output: Path) -> None:
        """Start nothing before the first `apply`. The logs of DUT and generator go below `output`."""
        self.config = config
        self._output = output
        self._hosts = HostPool(config.hosts)
        #: Each with the host that it is on.
        self._duts: dict[Place, tuple[Dut, Host]] = {}
        self._generator: Connector | None = None
        self._connected: Dut | None = None
        #: DUTs that are up, connected or not, with topology and ports; None after a failure. Unused ones are paused.
        self._standing: dict[Place, tuple[Topology, Ports] | None] = {}
        #: After `apply_pair`: both side by side, or where this testbed cannot have that, in turn.
        self.side_by_side: SideBySide | None = None
        self.in_turn: InTurn | None = None
        #: What counts instructions, with its sandbox, where a test has asked for it since a DUT was set up.
        self._counter: tuple[Counter, Sandbox] | None = None
        #: DUTs that were let go of and could not put their host back as it was, with that host.
        self._not_restored: list[tuple[Dut, Host]] = []
        self._claims: list[Claim] = []
        #: What tells programs from other builds, as it was found first.
        self._programs: dict[Place, str] = {}

    def claim(self, say: Callable[[str], None]) -> None:
        """Claim the lab's hosts, and the CPUs of this machine to measure on, until `close`. Wait for a CPU for as long
        as another run holds it, and for a host for the time in the testbed file; `say` reports the wait. Then raise
        `TestbedError` with the holder."""

        if self._claims:
            return
        hosts = {name: [FOLDER] for name in hosts_for_itself(self.config)}
        cpus = folders_of(cpus_for_itself(self.config, self._hosts.machine(LOCAL).usable_cpus))
        self._claims = [
            Claim(self._hosts, hosts, self.config.wait_for_hosts_s, say),
            Claim(self._hosts, {LOCAL: cpus} if cpus else {}, None, say),
        ]

    @property
    def offers(self) -> frozenset[type[Load]]:
        """Kinds of load that the traffic generator can offer, known before it is connected."""
        return self._connector.offers

    @property
    def generator(self) -> TrafficGenerator:
        return self._connector.generator

    @property
    def dut(self) -> Dut:
        """The DUT that was set up last; of a pair side by side, the tested side's."""
        if self._connected is None:
            raise TestbedError("No topology is applied yet.")
        return self._connected

    def placement(self, topology: Topology) -> Placement:
        """Return the CPUs of a topology on the DUT's machine: those that the testbed file names, else chosen ones.
        Raise `MissingResource` where there are too few."""
        is_cable = topology.datapath == CABLE.datapath
        generator = self.config.generator
        host = generator.host if is_cable else self.config.dut(topology.datapath).host
        same_machine = machine_of(host) == machine_of(generator.host)
        plan = self.config.cpus.model_copy(update={"generator": self.config.generator_cpus or "auto"})
        threads = topology.cpus
        if is_cable and machine_of(host) not in {machine_of(dut.host) for dut in self.config.duts}:
            plan, threads = plan.model_copy(update={"pmd": "auto", "housekeeping": "auto"}), 0  # another machine's
        return plan_cpus(
            plan, self._hosts.machine(host), threads,
            generator_cpus=generator.cpus_needed if same_machine else 0,
            of_use=generator.cpus_of_use,
            shared=self.config.oversubscribe,
        )  # fmt: skip

    def program(self, topology: Topology, build: str = "") -> str:
        """Return the identity of a DUT's program, which tells builds apart, before the DUT is set up; empty for a
        cable. Raise `TestbedError` where the DUT's machine does not tell it."""
        place = self._place(Setup(topology, build))
        if place.datapath == CABLE.datapath:
            return ""
        if place not in self._programs:
            config = self.config.dut(place.datapath, place.build)
            machine = self._hosts.host(machine_of(config.host))
            self._programs[place] = KINDS[place.datapath].program(config, machine)
        return self._programs[place]

    def apply(self, topology: Topology, profile: Profile | None = None) -> None:
        """Set the DUT up as `topology` and connect the generator to it, with buffers large enough for `profile`.

        Raise `MissingResource` where this testbed lacks what the topology needs, `TestbedError` where the DUT's state
        is not what was asked for.
        """
        self._part()
        self._apply(Setup(topology), profile)

    def apply_pair(self, tested: Setup, other: Setup, profile: Profile, first: Side | None = None) -> None:
        """Set up the two sides of a comparison: as `side_by_side`, each in a sandbox of its own on the same CPUs, with
        the generator wired to both; else as `in_turn`, which has the reason. `dut` is the tested side's. `first`: set
        both sides up again, with new memory and processes (as `in_turn`, at each turn); side by side, the generator is
        wired to this side first.

        Raise what `apply` raises for the tested side, and `TestbedError` for the other one.
        """
        self._part()
        setups: dict[Side, Setup] = {"tested": tested, "other": other}
        try:
            self.side_by_side = self._side_by_side(setups, profile, first)
        except MissingResource as error:
            if other.profile:  # a search of each, minutes apart, would scatter more than they differ
                raise MissingResource(f"Two profiles are compared side by side only. {error}") from error

            def become(setup: Setup) -> tuple[Dut, TrafficGenerator]:
                if first:
                    self._make_way_for()
                return self._apply(setup, profile)

            turns = InTurn(setups, str(error), become)
            turns.turn("tested")
            self.in_turn = turns

    def counter(self, datapath: str) -> Counter:
        """Return the instruction counter. All DUTs are taken down first, and the set-up of a DUT ends the counter."""
        self._part()
        self._connected = None
        self._make_way_for()
        if self._counter is None:
            self._counter = self._make(Place(datapath))
        return self._counter[0]

    def replace_broken(self, topology: Topology) -> str:
        """Remove the broken DUTs of the topology's kind, so that `apply` makes new ones. Return what is broken, a
        sentence each; empty where nothing is."""
        said = []
        for dut in [dut for place, (dut, _) in self._duts.items() if place.datapath == topology.datapath]:
            if trouble := dut.trouble():
                said += [trouble, *self._try_to(self._connector.disconnect), *self._let_go_of(dut)]
        return " ".join(said)

    def discard(self) -> list[str]:
        """Remove generator, counter and DUTs in whatever state they are, with their sandboxes: the next `apply` makes
        new ones. Return a sentence for each thing that could not be undone."""
        complaints = self._try_to(self._generator.close) if self._generator else []
        complaints += self._let_go_of_counter()
        for dut, _ in list(self._duts.values()):
            complaints += self._let_go_of(dut)
        self._connected = self.side_by_side = self.in_turn = None
        return complaints

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return the facts that the figures depend on: testbed file, DUT (with its machine), generator, the generator's
        machine. A part that no longer answers has the reason as its `trouble`."""
        measured = self._connected or (self._counter[0] if self._counter else None)
        told = _answer_or_trouble(measured.snapshot) if measured else {}
        if self.in_turn and not self.in_turn.has_tested:  # what stands is the other side
            told = dict(self.in_turn.facts)
        return {
            "testbed": self.config.model_dump(mode="json"),
            "dut": told,
            "generator": _answer_or_trouble(self._connector.facts),
            "machine": _answer_or_trouble(lambda: self._hosts.machine(self.config.generator.host).as_record()),
        }

    def capture(self) -> dict[str, str]:
        """Return what the DUT that was set up last shows of its failure (`Dut.capture`); empty without a DUT."""
        standing = [self._duts[place][0] for place in self._standing if place in self._duts]
        dut = self._connected or (standing[-1] if standing else None)
        return dut.capture() if dut else {}

    def close(self) -> None:
        """Remove everything, even what is broken, and end the claims. May be called twice. Raise `TestbedError` with
        what could not be undone."""
        complaints = self.discard()
        while self._not_restored:  # its host may answer again
            complaints += self._try_to(partial(self._restore, *self._not_restored.pop()))
        complaints += self._try_to(self._hosts.close)
        self._claims = []
        if complaints:
            raise TestbedError(" ".join(dict.fromkeys(complaints)))

    def _let_go_of(self, dut: Dut) -> list[str]:
        """Remove a DUT: restore its host, or discard its sandbox. Return what failed; `close` tries a host again."""
        for place in [place for place, (known, _) in self._duts.items() if known is dut]:
            _, host = self._duts.pop(place)
            self._standing.pop(place, None)
            complaints = self._try_to(partial(self._restore, dut, host))
            if isinstance(host, Sandbox):
                return self._try_to(partial(self._hosts.discard, host))
            if complaints:
                self._not_restored.append((dut, host))
            return complaints
        return []

    def _restore(self, dut: Dut, host: Host) -> None:
        """Restore the DUT's host. Raise `Taken`, and change nothing, where another run has claimed the host."""
        for claim in self._claims:
            claim.require(host)
        dut.restore()

    def _let_go_of_counter(self) -> list[str]:
        """Remove the counter with its sandbox. Return what failed."""
        counter, self._counter = self._counter, None
        return self._try_to(partial(self._hosts.discard, counter[1])) if counter else []

    def _try_to(self, take_down: Callable[[], None]) -> list[str]:
        """Call `take_down`. Return its error as a sentence instead of raising it: the rest is taken down too."""
        try:
            take_down()
        except Exception as error:
            reraise_stop(error)
            return [sentence_of(error, self._output)]
        return []

    @property
    def _connector(self) -> Connector:
        if self._generator is None:
            make, logs = CONNECTORS[self.config.generator.type], self._output / "generator"
            self._generator = make(self.config, self._hosts, lambda: self.placement(CABLE), logs)
        return self._generator

    def _apply(self, setup: Setup, profile: Profile | None) -> tuple[Dut, TrafficGenerator]:
        self._connected = None
        place = self._place(setup)
        dut, host = self.dut_at(place)
        if place.datapath != CABLE.datapath:  # which needs nothing that another DUT could take away
            self._make_way_for(place)
        placement = self.placement(setup.topology)
        self._connector.disconnect()
        with blaming_the_dead(dut.trouble):
            ports = self._stand(place, setup.topology)
            self._connector.connect(ports, host, placement, _frame_bytes(profile))
        self._connected = dut
        return dut, self.generator

    def _side_by_side(self, setups: Mapping[Side, Setup], profile: Profile, first: Side | None) -> SideBySide:
        """Set a pair up; where a side is to be `first`, set up standing DUTs again. Raise `MissingResource` where two
        DUTs cannot run side by side here."""
        self._connected = None
        order = _SIDES[::-1] if first == "other" else _SIDES
        places = {side: self._place(setup) for side, setup in setups.items()}
        if places["tested"] == places["other"]:
            places[order[1]] = replace(places[order[1]], beside=True)
        self._require_sandboxes(*places.values())
        placement = self.placement(setups[order[0]].topology)
        if first:
            self._make_way_for()
        made = {side: self.dut_at(place) for side, place in places.items()}
        duts = {side: dut for side, (dut, _) in made.items()}
        self._make_way_for(*places.values())
        self._connector.disconnect()

        def stand(side: Side) -> Ports:
            # The side that stands first leaves the CPUs to the other one.
            ports = self._stand(places[side], setups[side].topology, again=side == order[0])
            duts[side].pause()
            return ports

        with blaming_the_dead(partial(trouble_of, duts)):
            ports = at_once(*(partial(stand, side) for side in order))
            for dut in duts.values():
                dut.resume()
            frame_bytes = max(_frame_bytes(setup.profile or profile) for setup in setups.values())
            for wired_as, side, ends in zip(_SIDES, order, ports, strict=True):
                self._connector.connect(ends, made[side][1], placement, frame_bytes, wired_as)
        facts = dict(zip(duts, at_once(*(dut.snapshot for dut in duts.values())), strict=True))
        if why := unlike(facts):
            raise MissingResource(why)
        sides = {side: setup.as_record(facts[side]) for side, setup in setups.items()}
        generator = self.generator
        assert isinstance(generator, PairedGenerator), "it was connected to a pair"
        self._connected = duts["tested"]
        return SideBySide(duts, sides, generator, profile, setups["other"].profile, order[0])

    def _part(self) -> None:
        """End the present pair, whatever is set up next, and renew the claims of the hosts."""
        for claim in self._claims:
            claim.renew()
        if self.side_by_side:
            with suppress(TestbedError):  # one that broke is found by who uses it next
                self.side_by_side.part()
        self.side_by_side = self.in_turn = None

    def _require_sandboxes(self, *places: Place) -> None:
        """Raise `MissingResource` where two DUTs cannot run at once, or where the generator cannot be wired to two."""
        if self.config.oversubscribe:
            raise MissingResource("Threads share CPUs on this testbed (oversubscribe), so nothing stands side by side.")
        for place in places:
            if (host := self.config.dut(place.datapath).host) != SANDBOX:
                raise MissingResource(f"There is one DUT on {host}: two stand side by side only in sandboxes.")
        if not self._connector.pairs:
            raise MissingResource(f"The traffic generator of testbed {self.config.name} serves one DUT at a time.")

    def _stand(self, place: Place, topology: Topology, *, again: bool = True) -> Ports:
        """Set a DUT up. Without `again`, only resume it where it has this topology already and is not broken."""
        dut, _ = self._duts[place]
        if not again and (known := self._standing.get(place)) and known[0] == topology and not dut.trouble():
            dut.resume()
            return known[1]
        self._standing[place] = None
        ports = dut.apply(topology)
        self._standing[place] = topology, ports
        return ports

    def _make_way_for(self, *wanted: Place) -> None:
        """Take down the DUTs that are not `wanted`, whose threads would use the same CPUs. One of the same kind may
        stay in its sandbox, paused, for the next pair."""
        if wanted:
            self._let_go_of_counter()
        room, leaving = _MOST_STANDING - len(wanted), []
        for place in [place for place in self._standing if place not in wanted]:
            dut, host = self._duts[place]
            if room > 0 and place.datapath in {each.datapath for each in wanted} and isinstance(host, Sandbox):
                room -= 1
                dut.pause()
                continue
            leaving.append(dut)
            self._standing.pop(place)
        if leaving:
            self._connector.disconnect()
        tried = at_once(*(partial(self._try_to, dut.restore) for dut in leaving))
        for dut in [dut for dut, failed in zip(leaving, tried, strict=True) if failed]:
            if complaints := self._let_go_of(dut):
                raise TestbedError(" ".join(complaints))
        for place in wanted:
            self._standing.setdefault(place, None)

    def _place(self, setup: Setup) -> Place:
        """Return the key of a set-up's DUT. The build that the testbed file names has the key without a build."""
        datapath, build = setup.topology.datapath, setup.build
        return Place(datapath, build if build and self.config.dut(datapath, build) != self.config.dut(datapath) else "")

    def dut_at(self, place: Place) -> tuple[Dut, Host]:
        """Return the DUT of a place and its host; make it where there is none."""
        if place not in self._duts:
            self._duts[place] = self._make(place)
        return self._duts[place]

    def _make(self, place: Place) -> tuple[Any, Any]:
        """Make a DUT, or the counter, and return it with its host. Start nothing."""
        if place.datapath == CABLE.datapath:
            return self._connector.cable()
        config = self.config.dut(place.datapath, place.build)
        host = self._hosts.host(config.host)
        around = Surroundings(
            host, self._hosts.machine(config.host), self.placement, self._output / "dut", self._macs,
            generator_carries=self.config.generator.carries,
        )  # fmt: skip
        return KINDS[place.datapath].build(config, around), host

    def _macs(self) -> list[tuple[str, str]]:
        """Return the generator's Ethernet addresses in a lab, which a Linux DUT does not resolve. Raise `ConfigError`
        where the testbed file lacks one."""
        macs = self.config.generator.port_macs
        if not all(map(all, macs)):
            raise ConfigError(
                f"testbed {self.config.name}: generator.client.mac and generator.server_port.mac are needed for a "
                f"Linux DUT.\n  Expected the MAC addresses that the ports of {self.config.generator.title} send from."
            )
        return macs


def _frame_bytes(profile: Profile | None) -> int:
    return largest_frame(profile) if profile else 1514


def _answer_or_trouble(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return the answer of `ask`, or its error as `trouble`: after a broken measurement, some parts answer no more."""
    try:
        return ask()
    except Exception as error:
        reraise_stop(error)
        return {"trouble": f"it could not be asked: {error}"}
