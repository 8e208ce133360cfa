"""The registry of traffic sources. A new kind is a module or package next to this file, its model in `GeneratorConfig`,
and its connector in `ctbench.testbed.testbed.CONNECTORS`."""

from typing import Annotated

from pydantic import Field

from ctbench.traffic.software import SoftwareGeneratorConfig
from ctbench.traffic.trex.source import TrexGeneratorConfig

#: What a testbed file says of the traffic generator.
GeneratorConfig = Annotated[SoftwareGeneratorConfig | TrexGeneratorConfig, Field(discriminator="type")]
