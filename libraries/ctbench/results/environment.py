"""What a record says of its environment and its campaign: facts of any kind, of which a few are known by name.

Every program may add facts. Those that pages and comparisons use have a type here, and a record in which they have
another one is refused.
"""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationInfo, WithJsonSchema
from pydantic_core import to_json

from ctbench.base.bounds import Count, Real, require_bounded


class Reading:
    """Context of a validation that reads records: only then facts are checked, as a measurement is not thrown away for
    an odd fact of its environment. Facts that runs have in common are checked once, and held once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, bytes], dict[str, Any]] = {}

    def once(self, kind: object, facts: dict[str, Any], check: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Facts that say the same, of those that were seen before; `check` sees them the first time."""
        key = (kind, to_json(facts, inf_nan_mode="constants"))
        if key not in self._known:
            check(facts)
            self._known[key] = facts
        return self._known[key]


#: A version is a text, and from some programs a number.
Text = str | Count | Real


class _Facts(BaseModel):
    """Base of what is known by name; each may be missing, and there may be more."""

    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


def _facts(model: type[_Facts]) -> tuple[AfterValidator, WithJsonSchema]:
    """Of a mapping from JSON that many records have in common, what makes sure that the facts known by name fit."""
    adapter = TypeAdapter(model)

    def check(facts: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        def first(facts: dict[str, Any]) -> None:
            require_bounded(facts)
            adapter.validate_python(facts, context=info.context)

        return info.context.once(model, facts, first) if isinstance(info.context, Reading) else facts

    return AfterValidator(check), _schema(model)


def _schema(model: type[_Facts]) -> WithJsonSchema:
    return WithJsonSchema(model.model_json_schema() | {"additionalProperties": True})


class _Hugepages(_Facts):
    size_kb: Count
    total: Count


class _Machine(_Facts):
    cpu_model: str = ""
    usable_cpus: list[Count] = []
    kernel: str = ""
    distribution: str = ""
    virtualisation: str = ""
    hugepages: list[Annotated[dict[str, Any], *_facts(_Hugepages)]] = []


class _Memory(_Facts):
    kind: str = ""
    megabytes: Count = 0


class _Placement(_Facts):
    generator: list[Count] = []
    pmd: list[Count] = []
    housekeeping: list[Count] = []
    oversubscribed: bool = False


class _Dut(_Facts):
    version: Text = ""
    dpdk_version: Text = ""
    kernel: Text = ""
    iptables: Text = ""
    nftables: Text = ""
    machine: Annotated[dict[str, Any], *_facts(_Machine)] = {}
    memory: Annotated[dict[str, Any], *_facts(_Memory)] = {}
    placement: Annotated[dict[str, Any], *_facts(_Placement)] = {}


_DUT = TypeAdapter(_Dut)


def _check_dut(facts: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    """No two records have the same: counters are among them. What is in common is inside."""
    if not isinstance(info.context, Reading):
        return facts
    known = _DUT.validate_python(facts, context=info.context)
    named = {name: getattr(known, name) for name in known.model_fields_set}
    require_bounded({name: value for name, value in facts.items() if name not in named})
    return facts | named


class _Generator(_Facts):
    type: Text = ""
    version: Text = ""
    wiring: Text = ""


class _Testbed(_Facts):
    name: str = ""
    description: str = ""
    duts: list[dict[str, Any]] = []


class _Campaign(_Facts):
    name: str = ""
    description: str = ""
    search: str = ""
    loss_ratio: Annotated[float, Field(ge=0, le=1)] = 0.0
    profiles: dict[str, str] = {}


TestbedFacts = Annotated[dict[str, Any], *_facts(_Testbed)]
DutFacts = Annotated[dict[str, Any], AfterValidator(_check_dut), _schema(_Dut)]
GeneratorFacts = Annotated[dict[str, Any], *_facts(_Generator)]
MachineFacts = Annotated[dict[str, Any], *_facts(_Machine)]
CampaignFacts = Annotated[dict[str, Any], *_facts(_Campaign)]

#: Names of the DUT's facts that pages and comparisons use.
DUT_FACTS = tuple(_Dut.model_fields)
