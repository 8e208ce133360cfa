"""The registry of promises: what can be measured and judged, each said once.

Keywords of suites, tags, `./run check promises`, the plan of a test and the page read it. A promise whose name is
`table dump time` has the keyword `Table Dump Time Should Meet SLA`, and others that say their minimum in the row. Those
of one procedure each stand beside it: in any module of `ctbench.measure.procedures`.
"""

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from ctbench.measure import procedures as modules
from ctbench.measure.procedure import Procedure, Promise
from ctbench.measure.procedures.below import Below
from ctbench.measure.procedures.pair import Pair
from ctbench.measure.procedures.rates import AtFloor, ClosedLoop, HighestRate
from ctbench.measure.procedures.same_load import SameLoad
from ctbench.results.metrics import CONNECTIONS, PACKETS

_LIMITED = "per second at which the loss stays within the limit"
_RATES = (
    Promise("connection rate", "rate", of_rate=f"finds the connections and packets {_LIMITED}", profiles=CONNECTIONS),
    Promise("packet rate", "rate", of_rate=f"finds the packets {_LIMITED}", profiles=PACKETS),
)


def _of_procedures() -> Iterator[Promise]:
    for module in pkgutil.iter_modules(modules.__path__, f"{modules.__name__}."):
        for found in vars(import_module(module.name)).values():
            if isinstance(found, Procedure) and found.promised:
                yield replace(found.promised, procedure=found)


PROMISES: Mapping[str, Promise] = {promise.name: promise for promise in (*_RATES, *_of_procedures())}


def procedures() -> dict[str, str]:
    """What each procedure does, by its name in records: those of rates, and those of one promise each."""
    of_one = (each for promise in PROMISES.values() for each in (promise.procedure, promise.in_turn) if each)
    of_rates = {each.name: each.says for each in (ClosedLoop, HighestRate, AtFloor, SameLoad, Below, Pair)}
    return of_rates | {each.name: each.says for each in of_one}
