"""Checks of a host as a whole: who we are there, its clock, and of this machine what a sandbox needs."""

import sys
from collections.abc import Callable, Iterator

from ctbench.base.errors import MissingResource
from ctbench.doctor.site import Site
from ctbench.hosts.config import SANDBOX
from ctbench.hosts.examination.finding import Finding, bad, ok, unknown
from ctbench.testbed import checks

#: Clocks further apart than this make logs and records hard to compare, seconds.
APART_S = 1.0


def check(site: Site) -> Iterator[Finding]:
    """Login and clock of a lab's host; Python, processor and namespaces of this machine."""
    if site.plan.ssh is None:
        yield ok("Python", ".".join(map(str, sys.version_info[:3])))
        if any(dut.host == SANDBOX for dut in site.plan.duts):
            yield _preflight("namespaces", "a sandbox can be made", checks.check_namespaces, "see the sentence")
    if site.plan.is_lab:
        yield _root(site)
        yield _clock(site)


def _preflight(what: str, well: str, judge: Callable[[], None], remedy: str) -> Finding:
    try:
        judge()
    except MissingResource as error:
        said, _, command = str(error).rpartition(" with: ")
        return bad(what, said or str(error), command if said else remedy)
    return ok(what, well)


def _root(site: Site) -> Finding:
    if site.facts.uid == 0:
        return ok("rights", "commands run as root")
    remedy = "run as root" if site.plan.ssh is None else f"set hosts.{site.plan.name}.sudo: true, or user: root"
    return bad("rights", f"commands run as user {site.facts.uid}, and setting a host up needs root", remedy)


def _clock(site: Site) -> Finding:
    facts = site.facts
    said = site.host.run(
        ["timedatectl", "show", "--property", "NTPSynchronized", "--value"], check=False
    ).stdout.strip()
    synchronised = {"yes": ", synchronised", "no": ", not synchronised"}.get(said, "")
    if site.plan.ssh is None:
        return (
            ok("clock", "synchronised")
            if said == "yes"
            else unknown("clock", "not known to be synchronised", "timedatectl set-ntp true")
        )
    apart, exact = facts.clock_ahead_s, facts.clock_exact_s
    side = "ahead of" if apart > 0 else "behind"
    shown = f"{abs(apart):.3f} s {side} this machine's, give or take {exact:.3f} s{synchronised}"
    if abs(apart) - exact > APART_S:
        return bad("clock", shown, "timedatectl set-ntp true")
    if said == "no":
        return unknown("clock", shown, "timedatectl set-ntp true")
    return ok("clock", shown)
