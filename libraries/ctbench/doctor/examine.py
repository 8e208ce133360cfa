"""The examination: each host of a testbed is reached, read and judged; what cannot be reached is a row, not the end."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ctbench.base.errors import CtbenchError
from ctbench.doctor import cards, cpus, linux, memory, ovs, system, trex
from ctbench.doctor.finding import Finding, bad, ok, unknown
from ctbench.doctor.plan import Card, HostPlan, plan_hosts
from ctbench.doctor.site import Site, read_site
from ctbench.hosts.base import Host
from ctbench.hosts.local import LocalHost
from ctbench.hosts.ssh import SshHost
from ctbench.testbed.config import TestbedConfig

#: In the order in which things are mended: first the machine, then what runs on it.
CHECKS = (system.check, cpus.check, memory.check, cards.check, ovs.check, linux.check, trex.check)

Connect = Callable[[TestbedConfig, HostPlan], Host]


@dataclass(frozen=True)
class Section:
    """The rows of one host, or of what lies between the hosts."""

    title: str
    findings: tuple[Finding, ...]


def connect(testbed: TestbedConfig, plan: HostPlan) -> Host:
    """This machine, or a host over SSH."""
    if plan.ssh is None:
        return LocalHost()
    return SshHost(plan.name, plan.ssh, testbed.hosts.get(plan.ssh.jump))


def examine(testbed: TestbedConfig, say: Callable[[str], None], connect: Connect = connect) -> Iterator[Section]:
    """Look at each host in turn; `say` hears what takes its time."""
    macs: dict[Card, str] = {}
    for plan in plan_hosts(testbed):
        say(f"looking at {address(plan)}")
        findings, facts = _examine_host(testbed, plan, connect)
        macs |= {card: facts.facts.mac(card) if facts else "" for card in plan.cards}
        yield Section(f"{address(plan)}: {plan.roles}", tuple(findings))
    if testbed.generator.type == "trex" and testbed.generator.server != "running" and macs:
        yield Section("between the hosts", tuple(cards.check_wiring(testbed.generator, macs)))


def address(plan: HostPlan) -> str:
    """What to call a host: its name, and how to get there."""
    if plan.ssh is None:
        return plan.name
    return f"{plan.name} ({plan.ssh.user}@{plan.ssh.address})"


def _examine_host(testbed: TestbedConfig, plan: HostPlan, connect: Connect) -> tuple[list[Finding], Site | None]:
    found: list[Finding] = []
    try:
        host = connect(testbed, plan)
    except CtbenchError as error:
        return [_unreachable(testbed, plan, error)], None
    try:
        site = read_site(host, plan)
        if plan.ssh is not None:
            machine = site.facts.machine
            found.append(ok("SSH", f"{machine.distribution}, Linux {machine.kernel}"))
        for check in CHECKS:
            found += _checked(check, site)
        return found, site
    except CtbenchError as error:
        return [*found, _unreachable(testbed, plan, error)], None
    finally:
        host.close()


def _checked(check: Callable[[Site], Iterator[Finding]], site: Site) -> list[Finding]:
    """The rows of one check; one that breaks off says why in a row of its own."""
    found: list[Finding] = []
    try:
        for finding in check(site):
            found.append(finding)
    except CtbenchError as error:
        found.append(unknown(check.__module__.rpartition(".")[2], f"could not be looked at: {error}".rstrip(".")))
    return found


def _unreachable(testbed: TestbedConfig, plan: HostPlan, error: CtbenchError) -> Finding:
    if plan.ssh is None:
        return bad("host", str(error).rstrip("."), "see the sentence")
    ssh = plan.ssh
    options = [f"-p {ssh.port}"] if ssh.port != 22 else []
    options += [f"-i {ssh.key}"] if ssh.key else []
    jump = testbed.hosts.get(ssh.jump)
    options += [f"-J {jump.user}@{jump.address}:{jump.port}"] if jump else []
    by_hand = " ".join(["ssh", *options, f"{ssh.user}@{ssh.address}", "true"])
    return bad("SSH", str(error).rstrip("."), f"{by_hand}  # has to work without a question")
