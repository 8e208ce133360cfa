"""The installations that are compared, looked at before one of them is measured: a night is too long to learn of it."""

from typing import Any

from ctbench.base.errors import CtbenchError
from ctbench.dut.registry import KINDS, DutConfig
from ctbench.hosts.connections import HostPool, machine_of
from ctbench.testbed import checks
from ctbench.testbed.config import TestbedConfig


def check_side(role: str, prefix: str, testbed: TestbedConfig) -> None:
    """Raise an error that begins with the side (`candidate=/opt/ovs-3.3`) where its installation cannot be measured on
    the testbed: `ConfigError` where the prefix is no folder, `MissingResource` where something in it is missing or does
    not work, `TestbedError` where its host cannot be reached."""
    hosts = HostPool(testbed.hosts)
    try:
        for dut in testbed.duts:
            if builds := KINDS[dut.type].builds:
                builds.check(hosts.host(machine_of(dut.host)), prefix)
        checks.check_machine(_with_prefix(testbed, prefix))
    except CtbenchError as error:
        raise type(error)(f"--installations {role}={prefix}: {error}") from None
    finally:
        hosts.close()


def _with_prefix(testbed: TestbedConfig, prefix: str) -> TestbedConfig:
    return testbed.model_copy(update={"duts": [_dut_with_prefix(dut, prefix) for dut in testbed.duts]})


def _dut_with_prefix(dut: DutConfig, prefix: str) -> DutConfig:
    kind = KINDS[dut.type]
    if kind.builds is None:
        return dut
    model: Any = kind.settings
    changed: DutConfig = model.model_validate(kind.builds.with_prefix(dut.model_dump(), prefix))
    return changed
