"""How each kind of traffic source is connected: an entry for each of `ctbench.traffic.registry.SOURCES`."""

from ctbench.testbed.connectors.connector import Connector
from ctbench.testbed.connectors.software import SoftwareConnector
from ctbench.testbed.connectors.trex import TrexConnector

CONNECTORS: dict[str, type[Connector]] = {"software": SoftwareConnector, "trex": TrexConnector}
