"""The kinds of traffic source that there are. A new one is a package next to this file and a line in `SOURCES`; and a
line in `ctbench.testbed.testbed.CONNECTORS`, which says how it is connected to a DUT."""

from typing import TYPE_CHECKING, TypeAlias

from ctbench.base.yaml_files import settings_of
from ctbench.traffic.kind import SourceSettings, TrafficSourceKind
from ctbench.traffic.software import SoftwareKind
from ctbench.traffic.trex.kind import TrexKind

SOURCES: dict[str, TrafficSourceKind] = {kind.name: kind for kind in (SoftwareKind(), TrexKind())}


if TYPE_CHECKING:
    GeneratorConfig: TypeAlias = SourceSettings
else:
    #: What a testbed file says of the traffic generator.
    GeneratorConfig = settings_of(SOURCES)
