"""Checks of a host whose kernel is the DUT, or has the sandboxes: tools, connection table, rules of its own."""

from collections.abc import Iterator

from ctbench.base.errors import TestbedError
from ctbench.doctor.finding import Finding, bad, ok, unknown
from ctbench.doctor.remedy import install
from ctbench.doctor.site import NF_CONNTRACK_MAX, Site
from ctbench.dut.linux.config import LinuxConfig
from ctbench.dut.linux.dut import PROGRAMS
from ctbench.dut.linux.netfilter import Netfilter
from ctbench.hosts.config import SANDBOX


def check(site: Site) -> Iterator[Finding]:
    """All about the kernel as a DUT, where it is one on this host."""
    duts = [dut for dut in site.plan.duts if isinstance(dut, LinuxConfig)]
    if not duts:
        return
    missing = sorted(name for name in PROGRAMS if name not in site.facts.programs)
    if missing:
        remedy = "./run setup" if site.plan.ssh is None else install(site.facts, [PROGRAMS[name] for name in missing])
        yield bad("Linux tools", f"{', '.join(missing)} not found", remedy)
    else:
        yield ok("Linux tools", f"Linux {site.facts.machine.kernel}: {', '.join(sorted(PROGRAMS))}")
    limit = site.facts.files.get(NF_CONNTRACK_MAX, "").strip()
    if limit:
        yield unknown("connection table", f"{limit} entries (nf_conntrack_max)")
    else:
        yield unknown("connection table", "not there before a rule asks for it")
    if "nft" in site.facts.programs and any(dut.host != SANDBOX for dut in duts):
        yield _rules(site)


def _rules(site: Site) -> Finding:
    try:
        Netfilter(site.host).require_none()
    except TestbedError as error:
        return bad("netfilter rules", str(error).partition(": remove")[0], "nft flush ruleset")
    return ok("netfilter rules", "none of its own")
