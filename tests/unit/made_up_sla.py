"""Made-up SLA files, and profiles and a topology that they have floors for."""

from pathlib import Path
from typing import Any

import pytest

from ctbench.base.errors import ConfigError
from ctbench.base.yaml_files import load
from ctbench.dut.topology import Topology
from ctbench.sla.floors import Floors
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile

LONG, SHORTENED = (load("profiles", name, ConnectionProfile) for name in ("long-lived", "long-lived-short"))
SHORT = ConnectionProfile(name="short", udp_percent=1)
TOPOLOGY = Topology(ruleset="conntrack", cpus=1, rx_queues=1)
KEY = "ovs-dpdk/conntrack/1cpu-1rxq"
OTHER = "ovs-dpdk/forward/1cpu-1rxq"
PACKETS = PacketProfile(name="packets", kind="packets", flows=10_000)
HEAD = {"name": "mine", "description": "", "source": "the article"}


def floors(**entries: Any) -> Floors:
    return Floors.model_validate(HEAD | {"loss_ratio": "<= 0.02%", KEY: entries})


def mistake(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mylab.yaml"
    path.write_text("name: mylab\ndescription: d\nsource: s\n" + text)
    with pytest.raises(ConfigError) as error:
        load("sla", path, Floors)
    return str(error.value).removeprefix(f"{tmp_path}/")


def stock(entry: Any, **head: Any) -> Floors:
    return Floors.model_validate(HEAD | {"loss_ratio": "<= 0.02%"} | head | {KEY: {"short": entry}})
