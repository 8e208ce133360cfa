"""The registry of promises: everything that can be measured and judged, each defined once.

Keywords and tags of suites, `./run check promises`, the plan of a test and the page read it. The promise `table dump
time` has the keyword `Table Dump Time Should Meet SLA`, and further keywords whose floor is in the row. A promise that
has a procedure of its own is defined with it, in a module of `ctbench.measure.procedures`.
"""

import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module

from ctbench.measure import procedures as modules
from ctbench.measure.procedure import Procedure, Promise
from ctbench.results.metrics import CONNECTIONS, PACKETS

__all__ = ["PROMISES", "Promise", "procedures"]


def _found() -> Iterator[Procedure | type[Procedure]]:
    """Yield the procedures, and the classes of those that a campaign configures."""
    for module in pkgutil.iter_modules(modules.__path__, f"{modules.__name__}."):
        for found in vars(import_module(module.name)).values():
            kind = found if isinstance(found, type) else type(found)
            if issubclass(kind, Procedure) and hasattr(found, "name"):
                yield found


PROMISES: Mapping[str, Promise] = {
    promise.name: promise
    for promise in (
        Promise(
            "connection rate",
            "rate",
            of_rate="finds the connections and packets per second at which the loss stays within the limit",
            profiles=CONNECTIONS,
        ),
        Promise(
            "packet rate",
            "rate",
            of_rate="finds the packets per second at which the loss stays within the limit",
            profiles=PACKETS,
        ),
        *(replace(each.promised, procedure=each) for each in _found() if isinstance(each, Procedure) and each.promised),
    )
}


def procedures() -> dict[str, str]:
    """Return the description of each procedure, by its name in records."""
    return {each.name: each.says for each in _found()}
