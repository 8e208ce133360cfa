"""The software generator (`ctgen`) as a traffic source of the suite, which raises the suite's errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pydantic import Field

import ctgen
from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.base.network import MOST_PORT_PAIRS, InterfacePair, named_ports, own_macs
from ctbench.hosts.config import LOCAL
from ctbench.hosts.machine import GENERATOR, Card, Examined, Finding, bad, ok
from ctbench.traffic.source import TrafficSource


@contextmanager
def _errors_of_the_suite() -> Iterator[None]:
    try:
        yield
    except ctgen.Unavailable as error:
        raise MissingResource(str(error)) from error
    except ctgen.GeneratorError as error:
        raise GeneratorError(str(error)) from error


class SoftwareTrafficGenerator(ctgen.Generator):
    """A `PairedGenerator` that raises errors of the suite."""

    offers = frozenset({ctgen.Rate, ctgen.Hold, ctgen.Saturation})

    connect = _errors_of_the_suite()(ctgen.Generator.connect)
    run_trial = _errors_of_the_suite()(ctgen.Generator.run_trial)
    run_slices = _errors_of_the_suite()(ctgen.Generator.run_slices)

    @contextmanager
    def hold(self, profile: ctgen.ConnectionProfile, load: ctgen.Hold) -> Iterator[ctgen.HeldConnections]:
        with _errors_of_the_suite(), super().hold(profile, load) as held:
            yield held


class InterfacePairs(InterfacePair):
    """Network interfaces of this machine, in pairs of ports."""

    #: Further pairs of ports.
    more_pairs: list[InterfacePair] = Field(default_factory=list, max_length=MOST_PORT_PAIRS - 1)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(pair.client, pair.server) for pair in (self, *self.more_pairs)]


class SoftwareGeneratorConfig(TrafficSource):
    """The software traffic generator of this repository. It runs in this process, without a network of its own, and
    each of its threads drives both ports. A trial that needs more than sixteen million open connections is marked as
    limited by the generator."""

    title = "software generator"
    carries = True  # over veth
    bytes_held = ctgen.RECORD_BYTES

    type: Literal["software"]
    #: Those that lead to the DUT's network cards; None where the DUT is in a sandbox, and its ports come with it.
    interfaces: InterfacePairs | None = None

    @property
    def host(self) -> str:
        return LOCAL

    @property
    def cpus_of_use(self) -> int:
        return ctgen.MOST_THREADS

    @property
    def port_pairs(self) -> int | None:
        return len(self.interfaces.pairs) if self.interfaces else None

    @property
    def port_macs(self) -> list[tuple[str, str]]:
        return [own_macs(pair) for pair in range(self.port_pairs or 1)]

    @property
    def cards(self) -> list[Card]:
        return [Card(GENERATOR, *named) for named in named_ports(self.interfaces.pairs)] if self.interfaces else []

    def require(self) -> None:
        with _errors_of_the_suite():
            ctgen.require_x86_64()
            ctgen.require_compiler()

    def examine(self, on: Examined) -> Iterator[Finding]:
        try:
            ctgen.require_x86_64()
        except ctgen.Unavailable as error:
            yield bad("processor", str(error), "measure on an x86-64 machine")
        else:
            yield ok("processor", "x86-64")
        try:
            yield ok("compiler", ctgen.require_compiler())
        except ctgen.Unavailable as error:
            yield bad("compiler", str(error), "./run setup")
