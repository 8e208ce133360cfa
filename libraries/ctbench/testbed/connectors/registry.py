"""How each kind of traffic source is connected: an entry for each of `ctbench.traffic.registry.SOURCES`."""

from ctbench.testbed.connectors.connector import ConnectorKind
from ctbench.testbed.connectors.software import SoftwareConnectorKind
from ctbench.testbed.connectors.trex import TrexConnectorKind

CONNECTORS: dict[str, ConnectorKind] = {"software": SoftwareConnectorKind(), "trex": TrexConnectorKind()}
