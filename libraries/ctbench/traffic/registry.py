"""The kinds of traffic source that there are. A new one is a package next to this file and a line in `SOURCES`; and a
line in `ctbench.testbed.connectors.registry`, which says how it is connected to a DUT."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, Union

from pydantic import Field

from ctbench.traffic.kind import SourceSettings, TrafficSourceKind
from ctbench.traffic.software.kind import SoftwareKind
from ctbench.traffic.trex.kind import TrexKind

SOURCES: dict[str, TrafficSourceKind] = {kind.name: kind for kind in (SoftwareKind(), TrexKind())}


def settings_of(kinds: Iterable[TrafficSourceKind]) -> Any:
    """The type of `generator` in a testbed file: the settings of one of the kinds."""
    models = tuple(dict.fromkeys(kind.settings for kind in kinds))
    return Annotated[Union[models], Field(discriminator="type")]  # noqa: UP007  # a union of what is in a list


if TYPE_CHECKING:
    GeneratorConfig: TypeAlias = SourceSettings
else:
    #: What a testbed file says of the traffic generator.
    GeneratorConfig = settings_of(SOURCES.values())
