"""What figures of one run have in common: the content of its files, the machine, and the build that is measured.

As far as it is known before anything is set up: of hosts over SSH, their records say it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from ctbench.base.errors import TestbedError
from ctbench.compare.comparability import leaves, short
from ctbench.dut.registry import KINDS
from ctbench.hosts.config import LOCAL, SANDBOX
from ctbench.hosts.local import LocalHost
from ctbench.hosts.machine import read_machine
from ctbench.run.settings import RunSettings
from ctbench.testbed.config import TestbedConfig
from ctbench.testbed.pool import least_cpus

#: Words for people, which change no figure.
_WORDS = ("description", "source")
#: Differences that a sentence names.
_SHOWN = 3


def read_inputs(testbeds: Sequence[TestbedConfig], chosen: dict[str, str]) -> dict[str, Any]:
    """What a run on `testbeds` depends on, by what it is; `chosen` as `RunSettings.load` takes it. `ConfigError` says
    what is wrong with a file."""
    settings = RunSettings.load(**chosen)
    found: dict[str, Any] = {
        "The campaign": settings.campaign.model_dump(mode="json", exclude=set(_WORDS)),
        "The SLA": settings.floors.model_dump(mode="json", exclude=set(_WORDS)),
    }
    for number, testbed in enumerate(testbeds, 1):
        label = f"Testbed {number} of the pool" if len(testbeds) > 1 else "The testbed"
        found[label] = testbed.model_dump(mode="json", exclude=set(_WORDS))
        found |= _builds(testbed)
    if settings.reference:
        rates = {f"{topology.label} {name}": rate for (topology, name), rate in settings.reference.rates.items()}
        found["The reference run"] = {"testbed": settings.reference.testbed, "rates": rates}
    if settings.base:
        found["The build to compare with"] = {"prefix": settings.base}
    if any(least_cpus(testbed) for testbed in testbeds):
        found["The machine"] = _machine()
    # As a file has it: a tuple is a list there, a number that is a key is a text.
    plain: dict[str, Any] = json.loads(json.dumps(found, default=str))
    return plain


def differences(then: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """A sentence for each of `read_inputs` that is not the same, with the keys that differ."""
    for what in dict.fromkeys([*then, *now]):
        was, is_now = (dict(leaves(side.get(what, {}))) for side in (then, now))
        keys = [key for key in dict.fromkeys([*was, *is_now]) if was.get(key) != is_now.get(key)]
        if keys:
            told = [f"{key or 'it'} was {short(was.get(key))} and is {short(is_now.get(key))}" for key in keys[:_SHOWN]]
            more = f", and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
            yield f"{what} is not the same: {', '.join(told)}{more}."


def _machine() -> dict[str, Any]:
    """Facts of this machine. The CPUs that this process may use are among them."""
    try:
        return asdict(read_machine(LocalHost()))
    except TestbedError:
        return {}


def _builds(testbed: TestbedConfig) -> dict[str, Any]:
    """What is installed on this machine of the testbed's DUTs, where there can be several builds."""
    found: dict[str, Any] = {}
    for dut in testbed.duts:
        builds = KINDS[dut.type].builds
        if builds and dut.host in (SANDBOX, LOCAL):
            found |= builds.versions(LocalHost(), dut)
    return found
