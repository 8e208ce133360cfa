"""The examination of a testbed: each host is reached, read and judged, and shown as a row per finding."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ctbench.base.errors import CtbenchError
from ctbench.doctor import cards, cpus, system
from ctbench.doctor.site import HostPlan, Site, plan_hosts, read_site
from ctbench.dut.registry import KINDS
from ctbench.hosts.connections import HostPool
from ctbench.hosts.machine import Card, Finding, State, bad, ok, unknown
from ctbench.testbed.config import TestbedConfig

Check = tuple[str, Callable[[Site], Iterable[Finding]]]
#: Of every host, with what a row says that takes the place of one that broke off.
CHECKS: tuple[Check, ...] = (
    ("system", system.check), ("cpus", cpus.check), ("memory", system.check_memory), ("cards", cards.check),
)  # fmt: skip


@dataclass(frozen=True)
class Section:
    """The findings of one host, or of the links between the hosts."""

    title: str
    findings: tuple[Finding, ...]


def examine(testbed: TestbedConfig, say: Callable[[str], None]) -> Iterator[Section]:
    """Examine each host in turn and yield its section. `say` receives a line before each host."""
    macs: dict[Card, str] = {}
    for plan in plan_hosts(testbed):
        say(f"looking at {address(plan)}")
        findings, facts = _examine_host(testbed, plan)
        macs |= {card: facts.facts.mac(card) if facts else "" for card in plan.cards}
        yield Section(f"{address(plan)}: {plan.roles}", tuple(findings))
    bridges = any(card.owner in KINDS and KINDS[card.owner].bridges for card in macs)
    if macs and (wiring := tuple(testbed.generator.examine_wiring(macs, bridges=bridges))):
        yield Section("between the hosts", wiring)


def checks_of(plan: HostPlan) -> list[Check]:
    """Return the checks of a host in the order of repair: first the machine, then what runs on it."""
    checks = list(CHECKS)
    for dut in plan.duts:
        checks.append((KINDS[dut.type].title, partial(KINDS[dut.type].examine, dut)))
    if plan.generator:
        checks.append((plan.generator.title, plan.generator.examine))
    return checks


def address(plan: HostPlan) -> str:
    """Return the name of a host, and its SSH login."""
    if plan.ssh is None:
        return "this machine"
    return f"{plan.name} ({plan.ssh.login})"


def _examine_host(testbed: TestbedConfig, plan: HostPlan) -> tuple[list[Finding], Site | None]:
    found: list[Finding] = []
    try:
        host = HostPool(testbed.hosts).host(plan.name)
    except CtbenchError as error:
        return [_unreachable(plan, error)], None
    try:
        site = read_site(host, plan)
        if plan.ssh is not None:
            machine = site.facts.machine
            found.append(ok("SSH", f"{machine.distribution}, Linux {machine.kernel}"))
        for what, check in checks_of(plan):
            found += _checked(what, check, site)
        if plan.ssh is None:
            found += _checked("other runs", partial(system.check_claimed, testbed), site)
        return list(dict.fromkeys(found)), site  # two DUTs may ask the same of one kernel
    except CtbenchError as error:
        return [*found, _unreachable(plan, error)], None
    finally:
        host.close()


def _checked(what: str, check: Callable[[Site], Iterable[Finding]], site: Site) -> list[Finding]:
    """Return the findings of one check. A check that breaks off adds a finding with the reason."""
    found: list[Finding] = []
    try:
        for finding in check(site):
            found.append(finding)
    except CtbenchError as error:
        found.append(unknown(what, f"could not be looked at: {error}".rstrip(".")))
    return found


def _unreachable(plan: HostPlan, error: CtbenchError) -> Finding:
    if plan.ssh is None:
        return bad("host", str(error).rstrip("."), "see the sentence")
    ssh = plan.ssh
    options = [f"-p {ssh.port}"] if ssh.port != 22 else []
    options += [f"-i {ssh.key}"] if ssh.key else []
    by_hand = " ".join(["ssh", *options, ssh.login, "sudo true" if ssh.sudo else "true"])
    return bad("SSH", str(error).rstrip("."), f"{by_hand}  # has to work without a question")


WIDTH = 120
#: Where the third column begins.
INDENT = 26
MARKS: dict[State, str] = {"ok": "✓", "bad": "✗", "unknown": "–"}  # noqa: RUF001
#: For a terminal that cannot show those.
PLAIN_MARKS: dict[State, str] = {"ok": "+", "bad": "X", "unknown": "-"}
COLOURS: dict[State, str] = {"ok": "\x1b[32m", "bad": "\x1b[31m", "unknown": ""}
RESET = "\x1b[0m"


def section_text(section: Section, *, marks: dict[State, str] = MARKS, colour: bool = False) -> str:
    """Return a host's heading and its rows."""
    return "\n".join([section.title, *(_row(finding, marks, colour) for finding in section.findings)])


def closing_line(sections: Iterable[Section], marks: dict[State, str] = MARKS) -> str:
    """Return the number of findings by state, and the next step."""
    findings = [finding for section in sections for finding in section.findings]
    counts = {state: sum(finding.state == state for finding in findings) for state in MARKS}
    numbers = ", ".join(f"{counts[state]} {marks[state]}" for state in MARKS)
    if counts["bad"]:
        return f"{numbers}: fix what is {marks['bad']}, then look again."
    return f"{numbers}: nothing is in the way of a run."


def is_well(sections: Sequence[Section]) -> bool:
    """True where nothing has to be fixed."""
    return not any(finding.state == "bad" for section in sections for finding in section.findings)


def _row(finding: Finding, marks: dict[State, str], colour: bool) -> str:
    shown = marks[finding.state]
    mark = f"{COLOURS[finding.state]}{shown}{RESET}" if colour and COLOURS[finding.state] else shown
    indent = " " * INDENT
    lines = textwrap.wrap(" ".join(finding.found.split()), WIDTH - INDENT, break_long_words=False) or [""]
    head = f"  {mark}  {finding.what:<{INDENT - 5}}"
    rows = [f"{head}{lines[0]}", *(f"{indent}{line}" for line in lines[1:])]
    # Never wrapped: it is there to be copied.
    return "\n".join([*rows, f"{indent}> {finding.remedy}"] if finding.remedy else rows)
