"""A testbed file: what a lab owner can get wrong is said before anything starts."""

from typing import Any

import pytest
import yaml

from ctbench.base.errors import ConfigError
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load
from ctbench.testbed.config import TestbedConfig

#: Network cards of a lab, as ports of a router.
CARDS = {"kind": "interfaces", "client": "ens1f0", "server": "ens1f1"}


def mistake(tmp_path: Any, change: dict[str, Any]) -> str:
    content = yaml.safe_load((ROOT / "variables/testbeds/local.yaml").read_text())
    for key, value in change.items():
        *parents, last = key.split(".")
        place = content
        for parent in parents:
            place = place[int(parent) if parent.isdigit() else parent]
        place[last] = value
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError) as error:
        load("testbeds", path, TestbedConfig)
    return str(error.value).removeprefix(str(path))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"duts.0.type": "ovs-dpkd"}, 'duts[0].type: "ovs-dpkd" is not known.\n  Expected one of: ovs-dpdk'),
        ({"duts.0.ovs.prefix": "opt"}, 'duts[0].ovs.prefix: "opt" is not'),
        ({"duts.0.ports.ring_size": 1000}, "duts[0].ports.ring_size: 1000 is not"),
        ({"duts.1.ports.ring_size": 10}, "duts[1].ports.ring_size: 10 is not"),
        ({"duts.0.ports.ringsize": 1024}, "duts[0].ports.ringsize: unknown key.\n  Expected one of: kind, ring"),
        ({"duts.0.memory_mb": 10}, "duts[0].memory_mb: 10 does not fit.\n  Expected a number of at least 256."),
        ({"duts.1.memory_mb": 1024}, "duts[1].memory_mb: unknown key.\n  Expected one of: host, ports, type."),
        ({"duts.0.hugepages": "always"}, 'duts[0].hugepages: "always" is not known.'),
        ({"duts.2.type": "linux-router"}, 'duts: duplicate type "linux-router".'),
        ({"duts": []}, "duts: there is no DUT."),
        ({"duts.1.host": "local"}, "duts[1]: host: local does not go with ports.kind: veth."),
        ({"duts.1.ports": CARDS}, "duts[1]: host: sandbox does not go with ports.kind: interfaces."),
        ({"duts.1.ports": CARDS | {"server": "ens1f0"}}, 'duts[1].ports: client and server are both "ens1f0".'),
        ({"duts.1.ports": CARDS | {"client": "ens 1"}}, 'duts[1].ports.client: "ens 1" is not'),
        ({"cpus.pmd": [1, 1]}, "cpus.pmd: [1, 1] is not"),
        ({"cpus.generator": []}, "cpus.generator: [] is not"),
        ({"cpus.pmd": {2: [3]}}, "cpus: pmd.2: [3] are 1 CPUs."),
        ({"cpus.pmd": [0, 1], "cpus.generator": [1]}, "cpus: CPU 1 is given to"),
        ({"cpus.pmd": {1: [1]}, "cpus.generator": [1]}, "cpus: CPU 1 is given to"),
        ({"oversubscribe": "yes"}, 'oversubscribe: "yes" does not fit.'),
        ({"rates": {"judged": False}}, "rates: judged: false without a reason."),
        ({"rates": {"judged": True, "because": "slow"}}, "rates: judged: true with a reason."),
        ({"rates": {"juged": False}}, "rates.juged: unknown key.\n  Expected one of: because, judged."),
        ({"cpus.housekeeping": "dutt"}, 'cpus.housekeeping: "dutt" is not known.'),
        ({"trex_home": "/opt"}, "trex_home: unknown key.\n  Expected one of: cpus, description, duts, generator"),
    ],
)  # fmt: skip
def test_a_mistake_is_said_with_its_key(tmp_path: Any, change: dict[str, Any], said: str) -> None:
    found = mistake(tmp_path, change)
    assert f": {said}" in found and "\n  Expected " in found


def test_a_labs_router_has_network_cards_on_the_machine_itself() -> None:
    local = load("testbeds", "local", TestbedConfig).model_dump()
    lab = local | {"duts": [{"type": "linux-router", "host": "local", "ports": CARDS}]}

    (router,) = TestbedConfig.model_validate(lab).duts

    assert router.ports.model_dump(exclude_none=True) == CARDS


def test_shared_cpus_are_allowed_where_the_testbed_says_that_nothing_is_measured() -> None:
    local = load("testbeds", "local", TestbedConfig).model_dump()
    local |= {"oversubscribe": True, "cpus": {"generator": [1], "pmd": [1], "housekeeping": "auto"}}
    assert TestbedConfig.model_validate(local).oversubscribe
