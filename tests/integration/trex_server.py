"""A real TRex server on a cable in a sandbox."""

import os
from pathlib import Path
from typing import Any

import pytest

from ctbench.hosts.base import Host
from ctbench.traffic.trex.server import StartedServer
from ctbench.traffic.trex.source import TrexGeneratorConfig, TrexPort

DATA = Path(__file__).parents[1] / "data/trex"
#: Network namespace of the server.
WITHIN = ("ip", "netns", "exec", "generator")
CLIENT_MAC, SERVER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"


def needs_trex() -> str:
    """TREX_HOME, the folder of the real TRex; skips without. The last step before TRex is needed, so that all that a
    test builds for it is built in every run."""
    home = os.environ.get("TREX_HOME", "")
    if not os.access(f"{home}/_t-rex-64", os.X_OK):
        pytest.skip("TREX_HOME is not set to a folder with a _t-rex-64 that this user can run: it is on no registry.")
    return home


def make_cable(host: Host) -> None:
    """A veth pair in the namespace `generator`, whose two ends are TRex' ports g0 and g1."""
    host.run(["ip", "netns", "add", "generator"])
    ends = ["g0", "address", CLIENT_MAC, "type", "veth", "peer", "name", "g1", "address", SERVER_MAC]
    host.run([*WITHIN, "ip", "link", "add", *ends])
    for interface in ("lo", "g0", "g1"):
        host.run([*WITHIN, "ip", "link", "set", interface, "up"])


def trex_config(**more: Any) -> TrexGeneratorConfig:
    """The configuration of a TRex in a sandbox, on that cable; TREX_HOME says where it is."""
    settings: dict[str, Any] = {
        "trex_home": os.environ.get("TREX_HOME", "/opt/trex"),
        "low_end": True,
        "software": True,
        "cpus": [max(os.sched_getaffinity(0))],
        "client": TrexPort(interface="g0", mac=CLIENT_MAC, dest_mac=SERVER_MAC),
        "server_port": TrexPort(interface="g1", mac=SERVER_MAC, dest_mac=CLIENT_MAC),
    }
    return TrexGeneratorConfig(type="trex", host="sandbox", server="start", **{**settings, **more})


def new_server(host: Host, logs: Path, **more: Any) -> StartedServer:
    """A server on that cable, or elsewhere in the namespace. `more`: what is configured otherwise."""
    config = trex_config(**more)
    return StartedServer(host, config, "127.0.0.1", logs, WITHIN)
