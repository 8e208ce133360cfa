"""The keywords of rows, derived from the registry of promises: one for each promise and each place of its floor."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctbench.base.units import did_you_mean
from ctbench.dut.topology import OPTIONS, Topology
from ctbench.measure.promises import PROMISES, Promise
from ctbench.results.metrics import METRICS, RATES, RELATIVE, Metric
from ctbench.run.settings import OwnEntry

#: Short words for metrics in a row.
SHORT = {"loss_ratio": "loss", "connect_time_p99": "connect_time", "latency_p99": "latency"}
#: Arguments of a row that are its own and not options of its topology.
ROW = ("datapath", "ruleset", "cpus", "rx_queues", "profile")


@dataclass(frozen=True)
class Form:
    """A form of keywords, by the place of the floor: the SLA file, or the row, as a figure or as a share of another
    row."""

    #: The end of the keyword.
    ending: str
    #: Arguments before those of the row, and their examples.
    first: Mapping[str, str]
    #: What it says of its floor.
    says: str

    def is_of(self, promise: Promise) -> bool:
        """True where a promise can be made in this form."""
        if not self.first:
            return True
        if promise.about == "cost":  # a count holds for one emulated machine, which an SLA file names
            return False
        if "share" in self.first:
            return promise.about == "rate"
        return self.ending == f"Should Be {metric_of(promise).bound.title()}"

    def name(self, promise: Promise) -> str:
        return f"{promise.name.title()} {self.ending}"

    def conditions(self, promise: Promise) -> dict[str, Metric]:
        """Return what can be promised by name in addition, by the words of a row: metrics that the test finds out, and
        conditions that every trial has to keep."""
        if not self.first:
            return {}
        procedure = promise.procedure
        own = RATES if promise.about == "rate" else procedure.found_out if procedure else ()
        fitting = [
            each
            for each in METRICS.values()
            if (each.name in own or each.role == "condition")
            and each.profiles & promise.profiles
            and each.name not in RELATIVE
        ]
        floor = None if "share" in self.first else metric_of(promise)
        return {SHORT.get(each.name, each.name): each for each in fitting if each is not floor}

    def documentation(self, promise: Promise) -> str:
        """Return the documentation of the keyword in Libdoc."""
        words = self.conditions(promise)
        row = EXAMPLES.get(promise.name, "ovs-dpdk    conntrack    1    1    short-lived")
        first = [f"{metric_of(promise).unit.example}" if name in ("minimum", "maximum") else example
                   for name, example in self.first.items()]  # fmt: skip
        lines = [f"A row that is judged: it {promise.says}.", "", self.says, ""]
        if words:
            lines += ["By name, besides options of the topology:", ""]
            lines += [
                f"| {word} | {each.title}: {each.bound} so much, such as ``{word}={each.unit.example}`` |"
                for word, each in words.items()
            ]
            lines.append("")
        return "\n".join([*lines, "Example:", "| " + "    ".join([self.name(promise), *first, row])])


FORMS = (
    Form(
        "Should Meet SLA",
        {},
        "Its floor is in the SLA file. By name: what differs from the default of the topology (`Use Topology`).",
    ),
    Form("Should Be At Least", {"minimum": ""}, "Its floor is in the row; no SLA file is needed."),
    Form("Should Be At Most", {"maximum": ""}, "What it may be at most is in the row; no SLA file is needed."),
    Form(
        "Should Keep",
        {"share": "66%", "of_topology": "ovs-dpdk/forward/1cpu-1rxq"},
        "Its floor is a share of what another topology serves, both measured side by side in turns; no SLA file is "
        "needed. The other topology is written as in an SLA file: DATAPATH/RULESET/CPUScpu-QUEUESrxq.",
    ),
)
#: Rows that are shown as examples, where a short-lived connection through conntrack will not do.
EXAMPLES = {
    "packet rate": "linux-bridge    forward    1    1    udp-9018    mtu=9000",
    "instruction cost": "emulated    ovs-conntrack    1    1    udp-64-1flow",
    "port churn time": "ovs-dpdk    conntrack    1    1    short-lived    idle_ports=128",
    "revalidation time": "ovs-dpdk    flow-each    1    1    udp-64-10k    revalidators=2",
    "forced revalidation time": "ovs-dpdk    flow-each    1    1    udp-64-10k    revalidators=2",
    "statistics time": "ovs-dpdk    conntrack    1    1    short-lived    idle_ports=1024",
    "held dump time": "ovs-dpdk    conntrack    1    1    held    timeout_s=300",
    "lock share": "ovs-dpdk    conntrack    8    8    long-lived",
    "new flow rate": "ovs-dpdk    flow-each    1    1    udp-exchange    handlers=1",
    "held connections": "ovs-dpdk    conntrack    1    1    held    timeout_s=120",
    "table level": "ovs-dpdk    conntrack    1    1    steady    timeout_s=5",
    "drain time": "ovs-dpdk    conntrack    1    1    held    timeout_s=5",
    "recovery time": "ovs-dpdk    conntrack    1    1    held    max_connections=10000",
    "early drop": "linux-router    iptables-stateful    1    1    held    timeout_s=120",
    "memory": "ovs-dpdk    conntrack    1    1    held    timeout_s=60",
    "port exhaustion": "ovs-dpdk    egress    1    1    egress    timeout_s=120",
}


def metric_of(promise: Promise) -> Metric:
    """Return the metric that a promise is about."""
    if promise.procedure:
        return METRICS[next(iter(promise.procedure.found_out))]
    return METRICS["cps" if "connections" in promise.profiles else "pps"]


def promised_in(promise: Promise, form: Form, row: Mapping[str, str]) -> OwnEntry | None:
    """Return what the arguments of a row promise; None where its floor is in the SLA file. "50k" is ">= 50k" for a
    metric of which higher is better."""
    if not form.first:
        return None
    words = form.conditions(promise) | dict.fromkeys(("minimum", "maximum"), metric_of(promise))
    own: dict[str, Any] = {
        words[word].name: _threshold(words[word], said) for word, said in row.items() if word in words
    }
    if "share" in form.first:
        share, other = row.get("share", ""), row.get("of_topology", "")
        own["ratio"] = {"rate": _threshold(METRICS["ratio"], share), "to": other}
    return own


def _threshold(metric: Metric, text: str) -> str:
    return text if text.strip()[:2] in ("<=", ">=") else f"{metric.operator} {text.strip()}"


#: Promise and form by keyword, as Robot Framework compares names.
KEYWORDS = {form.name(promise).lower(): (promise, form)
            for form in FORMS for promise in PROMISES.values() if form.is_of(promise)}  # fmt: skip


def topology_of(row: Mapping[str, Any]) -> Topology:
    """Return the topology of a row's arguments. Raise `ValidationError` for an invalid one."""
    of_the_row = ("datapath", "ruleset", "cpus", "rx_queues", *OPTIONS)
    return Topology.model_validate({name: row[name] for name in of_the_row if row.get(name) is not None})


def is_by_name(argument: str) -> bool:
    """True where an argument of a keyword is written as `name=value`."""
    name, equals, _ = argument.partition("=")
    return bool(equals) and name.isidentifier()


def no_option(name: str, known: Iterable[str] = OPTIONS) -> str:
    """Return the sentence for a name that is not an option of a topology. `known`: the names to suggest instead."""
    return (
        f"{name} is not an option of a topology.\n  Expected {', '.join(OPTIONS)}.{did_you_mean(name, sorted(known))}"
    )


def arguments_of(form: Form, promise: Promise, given: Sequence[str]) -> dict[str, str] | None:
    """Return the arguments of a row by name, from those of its test; None where there are too few. Raise `ValueError`
    for a name that the keyword does not have."""
    names, found = (*form.first, *ROW), dict[str, str]()
    known = {*names, *OPTIONS, *form.conditions(promise)}
    positional = iter(names)
    for argument in given:
        name, _, value = argument.partition("=")
        if not is_by_name(argument):
            found[next(positional, "")] = argument
        elif name in known:
            found[name] = value
        else:
            raise ValueError(no_option(name, known))
    return found if set(names) <= set(found) else None
