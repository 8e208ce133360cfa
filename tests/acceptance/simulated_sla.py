"""`./run sla` as it is, on a testbed that is made up: a router that forwards 400 k packets/s, and one with SNAT that
cannot be set up; a bridge over bonds is lacking. No DUT, no traffic, no waiting."""

import sys

from unit.simulated import FORWARDING
from unit.simulated_run import SNAT_KEY, SimulatedTestbed

from ctbench.base.errors import MissingResource, TestbedError
from ctbench.cli.main import main
from ctbench.run import acceptance
from ctbench.testbed.config import TestbedConfig

OFFICE, STATEFUL = "linux-router/nftables-office/1cpu-1rxq", "linux-router/nftables-stateful/1cpu-1rxq"
BONDS = "linux-bridge/forward/1cpu-1rxq/ports=bond"


def made_up(config: TestbedConfig, *_: object) -> SimulatedTestbed:
    """In the place of the testbed of a file."""
    capacities = {FORWARDING: 400_000.0, OFFICE: 400_000.0, STATEFUL: 300_000.0}
    missing = MissingResource("There is no module `bonding`.")
    errors = {SNAT_KEY: TestbedError("The host does not answer."), BONDS: missing}
    # A record of an earlier part counts by it.
    return SimulatedTestbed(capacities, errors=errors, told={"testbed": config.model_dump(mode="json")})


if __name__ == "__main__":
    acceptance.Testbed = made_up  # type: ignore[misc, assignment]
    TestbedConfig.check_machine = lambda _: None  # type: ignore[method-assign]
    sys.exit(main(["sla", *sys.argv[1:]]))
