"""The doctor's rows of a host whose kernel is the DUT: tools, connection table, rules of its own."""

from collections.abc import Iterator

from ctbench.base.errors import TestbedError
from ctbench.dut.linux.config import LinuxConfig
from ctbench.dut.linux.dut import PROGRAMS
from ctbench.dut.linux.netfilter import Netfilter
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.examination.facts import NF_CONNTRACK_MAX, Examined
from ctbench.hosts.examination.finding import Finding, bad, ok, unknown
from ctbench.hosts.examination.remedy import install


def examine(config: LinuxConfig, site: Examined) -> Iterator[Finding]:
    """All about the kernel as a DUT on this host."""
    missing = sorted(name for name in PROGRAMS if name not in site.facts.programs)
    if missing:
        remedy = "./run setup" if site.ssh is None else install(site.facts, [PROGRAMS[name] for name in missing])
        yield bad("Linux tools", f"{', '.join(missing)} not found", remedy)
    else:
        yield ok("Linux tools", f"Linux {site.facts.machine.kernel}: {', '.join(sorted(PROGRAMS))}")
    limit = site.facts.files.get(NF_CONNTRACK_MAX, "").strip()
    if limit:
        yield unknown("connection table", f"{limit} entries (nf_conntrack_max)")
    else:
        yield unknown("connection table", "not there before a rule asks for it")
    if "nft" in site.facts.programs and config.host != SANDBOX:
        yield _rules(site)


def _rules(site: Examined) -> Finding:
    try:
        Netfilter(site.host).require_none()
    except TestbedError as error:
        return bad("netfilter rules", str(error).partition(": remove")[0], "nft flush ruleset")
    return ok("netfilter rules", "none of its own")
