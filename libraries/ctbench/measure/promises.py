"""The registry of promises: what can be measured and judged, each said once.

Keywords of suites, tags, `./run check promises`, the plan of a test and the page read it. A promise whose name is
`table dump time` has the keyword `Table Dump Time Should Meet SLA`, and others that say their floor in the row. Those
of one procedure each stand beside it: in any module of `ctbench.measure.procedures`.
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
    """The procedures, and the classes of those that a campaign sets up."""
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
    """What each procedure does, by its name in records."""
    return {each.name: each.says for each in _found()}
