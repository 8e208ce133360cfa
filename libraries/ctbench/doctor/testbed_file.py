"""The testbed file made from what was found: two hosts of a lab, or this machine with DUTs in sandboxes."""

from datetime import UTC, datetime
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.base.network import MOST_PORT_PAIRS
from ctbench.base.text import one_line
from ctbench.base.yaml_files import make
from ctbench.doctor.found import Found, FreeCard, look
from ctbench.hosts.config import LOCAL, SANDBOX, SshConfig
from ctbench.hosts.connections import HostPool
from ctbench.testbed.config import TestbedConfig

#: What the hosts are called in the file.
_DUT, _GENERATOR = "dut", "tgen"
#: Threads that TRex has for data at most.
_MOST_THREADS = 64
_TEMPLATE = "testbed.yaml.j2"


def make_testbed_file(name: str, dut: str, generator: str) -> str:
    """Return the file of a testbed `name`. `dut` and `generator`: logins as `user@host`; empty: this machine. Raise
    `ConfigError` for an invalid login, or for two logins to one host; `MissingResource` where a host cannot be reached
    or has no two cards that nothing uses."""
    if dut and dut == generator:
        raise ConfigError(f"--dut and --generator: {dut} is one host.\n  Expected two, or neither for this machine.")
    hosts = {key: _login(key, text) for key, text in ((_DUT, dut), (_GENERATOR, generator)) if text}
    try:
        return _written(name, hosts)
    except TestbedError as error:
        raise MissingResource(str(error)) from None


def _login(key: str, text: str) -> SshConfig:
    user, _, address = text.rpartition("@")
    return make({"address": address, "user": user}, "--dut" if key == _DUT else "--generator", SshConfig)


def _written(name: str, hosts: dict[str, SshConfig]) -> str:
    is_lab, pool = bool(hosts), HostPool(hosts)
    places = {key: key if key in hosts else LOCAL for key in (_DUT, _GENERATOR)}
    try:
        for key, entry in hosts.items():
            if pool.host(key).run(["id", "-u"]).stdout.strip() != "0":
                hosts[key] = entry.model_copy(update={"sudo": True})
        ports, sudoers = "pci" if is_lab else "memif", {key for key, entry in hosts.items() if entry.sudo}
        looked = {place: look(pool.host(place), ports, sudo=place in sudoers) for place in sorted({*places.values()})}
    finally:
        pool.close()
    dut, generator = (looked[place] for place in places.values())
    if is_lab and dut.macs and (dut.macs, dut.boot) == (generator.macs, generator.boot):
        logins = [hosts[key].login if key in hosts else "this machine" for key in places]
        raise ConfigError(
            f"--dut and --generator: {' and '.join(logins)} are one host: both have the network card "
            f"{min(dut.macs)}.\n  Expected two hosts, or neither for this machine."
        )
    trex = is_lab and (_GENERATOR in hosts or bool(generator.trex))
    dut_cards, *dut_more = _pairs(_DUT, dut, pci=bool(dut.ovs)) if is_lab else [()]
    cards, *more = _pairs(_GENERATOR, generator, pci=None if trex else False) if is_lab else [()]
    further = min(len(dut_more), len(more), MOST_PORT_PAIRS - 1)
    near = generator.near(cards[0].node)[:_MOST_THREADS] if trex else ()
    text = _environment().get_template(_TEMPLATE).render(
        name=name,
        day=f"{datetime.now(UTC):%Y-%m-%d}",
        description=" and ".join(entry.login for entry in hosts.values()) or "DUTs in sandboxes of this machine.",
        hosts=hosts,
        dut=dut,
        dut_host=places[_DUT] if is_lab else SANDBOX,
        dut_cards=dut_cards,
        dut_more=dut_more[:further],
        generator=generator,
        generator_host=places[_GENERATOR],
        generator_cards=cards,
        generator_more=more[:further],
        trex=trex,
        threads=[*generator.others[:2], *near] if near and len(generator.others) > 1 else [],
        pmd=list(dut.near(dut_cards[0].node)) if dut_cards else [],
    )  # fmt: skip
    make(yaml.safe_load(text), f"{name}.yaml", TestbedConfig)
    return text


def _pairs(key: str, found: Found, *, pci: bool | None) -> list[tuple[FreeCard, ...]]:
    if pairs := found.pairs(pci=pci):
        return [*pairs]
    kind = {True: "cards with a PCI address", False: "interfaces of the kernel", None: "cards"}[pci]
    seen = "; ".join([*(f"{card} is free" for card in found.cards), *found.taken]) or "it has none"
    raise MissingResource(
        f"{key}: two {kind} are needed that are up and that nothing uses; {one_line(seen)}: connect them, and take "
        "their addresses away, or give them to vfio-pci."
    )


def _environment() -> Environment:
    """Return the environment of the template. Texts of a host are reduced to one line, so that they cannot leave a
    comment."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=lambda value: one_line(str(value)) if type(value) in (str, FreeCard) else value,
    )  # fmt: skip
