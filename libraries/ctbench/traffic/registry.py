"""The kinds of traffic source that there are. A new one is a package next to this file, its model in `GeneratorConfig`,
and a line in `ctbench.testbed.testbed.CONNECTORS`, which says how it is connected to a DUT."""

from typing import Annotated

from pydantic import Field

from ctbench.traffic.software import SoftwareGeneratorConfig
from ctbench.traffic.trex.source import TrexGeneratorConfig

#: What a testbed file says of the traffic generator.
GeneratorConfig = Annotated[SoftwareGeneratorConfig | TrexGeneratorConfig, Field(discriminator="type")]
