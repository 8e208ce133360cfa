"""Records of version 1, as they were written until November 2026: what they say, in the words of version 2.

A capacity stood in `measured` with the other figures, floors were kept as their texts, and what the ports of a topology
are was a part of its ruleset's name.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict

from ctbench.base.bounds import Amount, Real
from ctbench.dut import registry
from ctbench.dut.topology import PortSetup
from ctbench.results.metrics import METRICS, RATE_OF, RENAMED
from ctbench.traffic.generator import ConnectTime, Latency, LoadUnit

_BEGINNING = re.compile(rb'\s*\{\s*"schema_version"\s*:\s*1\s*[,}]')

#: Metrics of a floor, in its order.
_Promised = Literal["cps", "pps", "bps", "relative", "loss_ratio", "setup_time_p99", "latency_p99"]
#: What keys of a trial were called.
_OF_A_TRIAL = {
    "setup_time_us": "connect_time_us",
    "timeline_setup_mean_us": "timeline_connect_mean_us",
    "timeline_setup_max_us": "timeline_connect_max_us",
}
_OF_A_TOPOLOGY = {"pmd_cpus": "cpus"}
#: What rulesets were called.
_RULESETS = {"notrack": "iptables-notrack"}
#: Rulesets of which only the ports were named: what they are called by the datapath, and otherwise.
_OF_PORTS, _OF_OTHER_PORTS = {"ovs-dpdk": "normal"}, "forward"
_PORTS = tuple(setup for setup in get_args(PortSetup) if setup != "plain")


def begins_as_version_1(text: str | bytes) -> bool:
    """Whether a document is one of version 1, by its first key: this program wrote the version there."""
    beginning = text[:100]
    return _BEGINNING.match(beginning.encode(errors="replace") if isinstance(beginning, str) else beginning) is not None


def upgrade(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document of version 2 that says the same. Nothing but the document decides that, and it stays as it is.

    What is of version 1 only is checked: pydantic's `ValidationError` names each mistake by the document's own keys.
    What both versions have goes through as it is, for the reader of version 2.
    """
    old = _Document.model_validate(dict(document), strict=True)
    new = {name: getattr(old, name) for name in _SAME if name in old.model_fields_set}
    return new | {
        "schema_version": 2,
        "procedure": "at-floor" if old.campaign.get("search") == "gate" else "highest-rate",
        "metric": "pps" if old.profile.get("kind") == "packets" else "cps",
        "figures": _figures(old),
        "thresholds": [_threshold(each, old.floors) for each in old.thresholds] or _promises(old.floors),
        "floor": _floor(old.floors),
        "evidence": {name: getattr(old, name) for name in ("trials", "upper_bound", "ceiling", "baseline")},
        "environment": _environment(old),
    }


def place_in_version_1(place: Sequence[str | int]) -> tuple[str | int, ...]:
    """Where a document of version 1 has what an upgraded one has at `place`."""
    back = {new: name for name, new in (_OF_A_TRIAL | _OF_A_TOPOLOGY).items()} | {"floor": "floors"}
    inner = place[1:] if len(place) > 1 and place[0] == "evidence" else place
    return tuple(back.get(str(key), key) for key in inner)


def _renamed(names: Mapping[str, str]) -> Callable[[Any], Any]:
    def rename(part: Any) -> Any:
        if not isinstance(part, dict):
            return part  # for the reader of version 2 to refuse
        for name in names.values():
            if name in part:
                raise ValueError(f"{name} is a key of another version")
        return {names.get(key, key): value for key, value in part.items()}

    return rename


def _topology(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    if "ports" in written:
        raise ValueError("ports is a key of another version")
    found, ruleset, datapath = dict(written), written.get("ruleset"), written.get("datapath", "ovs-dpdk")
    if not isinstance(ruleset, str) or not isinstance(datapath, str) or not ruleset:
        return found
    if ruleset in _PORTS:
        return found | {"ruleset": _OF_PORTS.get(datapath, _OF_OTHER_PORTS), "ports": ruleset}
    name, _, ports = ruleset.partition("+")
    return found | {"ruleset": _RULESETS.get(name, name)} | ({"ports": ports} if ports else {})


_rename_trial = _renamed(_OF_A_TRIAL)


def _trial(made: dict[str, Any]) -> dict[str, Any]:
    return made | {"trial": _rename_trial(made["trial"])} if "trial" in made else made


def _name(metric: str) -> str:
    """What a metric is called now."""
    return RENAMED.get(metric, metric)


def _promise(name: str) -> AfterValidator:
    """Of the text of a threshold, what makes sure that it can be read again."""

    def check(text: str) -> str:
        _limit(name, text)
        return text

    return AfterValidator(check)


def _limit(name: str, text: str) -> float:
    return METRICS[name].unit.parse(text.removeprefix(">=").removeprefix("<=").strip())


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Cpu(_Part):
    busy_cpus: Real
    ns_per_packet: Real | None
    source: str


class _Measured(_Part):
    unit: LoadUnit
    rate: Amount
    pps: Amount
    bps: Amount
    active_connections: Real
    loss_ratio: Real
    setup_time_us: ConnectTime | None
    latency_us: Latency | None = None
    cpu: _Cpu | None = None


class _Threshold(_Part):
    metric: _Promised
    threshold: str
    limit: Real
    measured: Real | None
    margin_pct: Real | None
    met: bool


class _Reference(_Part):
    cps: Real | None = None
    pps: Real | None = None
    source: str


class _Floors(_Part):
    key: str
    profile: str
    cps: Annotated[str, _promise("cps")] | None = None
    pps: Annotated[str, _promise("pps")] | None = None
    bps: Annotated[str, _promise("bps")] | None = None
    relative: Annotated[str, _promise("ratio")] | None = None
    relative_to: str | None = None
    loss_ratio: Annotated[str, _promise("loss_ratio")] | None = None
    setup_time_p99: Annotated[str, _promise("connect_time_p99")] | None = None
    latency_p99: Annotated[str, _promise("latency_p99")] | None = None
    source: str
    derivation: str = ""
    reference: _Reference | None = None


class _Document(_Part):
    """The keys of version 1. `Any`: as in version 2."""

    schema_version: Literal[1]
    tool_version: Any
    run_id: Any
    suite: Any
    test: Any
    tags: Any
    started: Any
    ended: Any
    wall_s: Any
    traffic_s: Any
    topology: Annotated[Any, AfterValidator(_renamed(_OF_A_TOPOLOGY)), AfterValidator(_topology)]
    profile: dict[str, Any]
    campaign: dict[str, Any]
    floors: _Floors
    thresholds: list[_Threshold]
    measured: _Measured | None
    limited_by: Any
    capacities: list[Amount]
    spread: Amount | None = None
    upper_bound: Any
    verdict: Any
    verdict_reason: Any
    margin_pct: Any
    ceiling: Any
    baseline: dict[str, Any] | None = None
    trials: list[Annotated[dict[str, Any], AfterValidator(_trial)]]
    environment: dict[str, Any]
    pool: Any = None
    notes: Any = None


#: Keys that version 2 has too, with the same in them once they are read.
_SAME = (
    "tool_version", "run_id", "suite", "test", "tags", "started", "ended", "wall_s", "traffic_s", "topology", "profile",
    "campaign", "limited_by", "verdict", "verdict_reason", "margin_pct", "pool", "notes",
)  # fmt: skip


def _figures(old: _Document) -> dict[str, Any]:
    found = old.measured
    if found is None:
        return {}
    rate = RATE_OF[found.unit].name
    values: dict[str, float | None] = {
        "pps": found.pps,
        rate: found.rate,
        "bps": found.bps,
        "loss_ratio": found.loss_ratio,
    }
    if found.unit == "connections":
        values["active_connections"] = found.active_connections
    if (times := found.setup_time_us) is not None:
        values |= {f"connect_time_{name}": getattr(times, name) / 1e6 for name in ("p50", "p99", "max")}
    if (latency := found.latency_us) is not None:
        values |= {f"latency_{name}": getattr(latency, name) / 1e6 for name in ("p50", "p99", "max", "jitter")}
    if (cpu := found.cpu) is not None:
        values["busy_cpus"] = cpu.busy_cpus
        values["cpu_time_per_packet"] = None if cpu.ns_per_packet is None else cpu.ns_per_packet / 1e9
    values["ratio"] = next((each.measured for each in old.thresholds if each.metric == "relative"), None)
    figures = {name: _figure(name, value) for name in METRICS if (value := values.get(name)) is not None}
    figures[rate] |= _bounds(found.rate, old)
    return figures


def _figure(name: str, value: float) -> dict[str, Any]:
    return {"value": value, "unit": METRICS[name].unit.name}


def _bounds(rate: float, old: _Document) -> dict[str, Any]:
    """What the capacity lies between: of one search, or of several."""
    if len(old.capacities) > 1:
        return {"low": min(old.capacities), "high": max(old.capacities), "samples": old.capacities}
    if not old.capacities:
        return {}
    above = old.upper_bound
    return {"low": rate} | ({"high": above} if isinstance(above, int | float) and above >= rate else {})


def _threshold(old: _Threshold, floors: _Floors) -> dict[str, Any]:
    return _written(_name(old.metric), old.limit, old.threshold, floors) | {
        "measured": old.measured,
        "margin_pct": old.margin_pct,
        "met": old.met,
    }


def _promises(floors: _Floors) -> list[dict[str, Any]]:
    """The thresholds of a floor that nothing was compared with."""
    texts = {_name(old): getattr(floors, old) for old in get_args(_Promised)}
    return [_written(name, _limit(name, text), text, floors) for name, text in texts.items() if text is not None]


def _written(name: str, limit: float, text: str, floors: _Floors) -> dict[str, Any]:
    to = floors.relative_to if name == "ratio" else None
    return {"metric": name, "operator": METRICS[name].operator, "limit": limit, "written": text, "to": to}


def _floor(floors: _Floors) -> dict[str, Any]:
    floor: dict[str, Any] = {name: getattr(floors, name) for name in ("key", "profile", "source", "derivation")}
    if (other := floors.reference) is not None:
        figures = {name: value for name in ("cps", "pps") if (value := getattr(other, name)) is not None}
        floor["reference"] = {"figures": figures, "source": other.source}
    return floor


def _environment(old: _Document) -> dict[str, Any]:
    facts = old.environment.get("dut")
    if not isinstance(facts, dict):
        return old.environment
    datapath = str(old.topology.get("datapath", "ovs-dpdk")) if isinstance(old.topology, dict) else ""
    product = {
        "product": registry.describe(datapath, facts),
        "product_details": registry.describe(datapath, facts, whole=True),
    }
    return old.environment | {"dut": facts | product}
