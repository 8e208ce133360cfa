"""What this process was given by the pool of testbeds that it belongs to, where there is one."""

import os
from pathlib import Path

from robot.libraries.BuiltIn import BuiltIn

from ctbench.results.record import PoolMember
from ctbench.run.pool_member import PoolRun
from ctbench.testbed.share import SHARE_VARIABLE, Share


def share() -> Share | None:
    """The testbed of the pool that is this process' own; None where there is no pool."""
    text = os.environ.get(SHARE_VARIABLE)
    return Share.from_json(text) if text else None


def pool_run(share: Share) -> PoolRun:
    """What this process has in common with the others of its pool. Its suite's place is a variable of pabot."""
    place = int(BuiltIn().get_variable_value("${PABOTQUEUEINDEX}"))
    return PoolRun(share.run_id, Path(share.output), PoolMember(name=share.name, cpus=list(share.cpus), suite=place))
