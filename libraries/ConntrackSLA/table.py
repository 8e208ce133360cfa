"""The keywords that measure and judge the connection table."""

from robot.api.deco import keyword

from ctbench.results.record import Record
from ctbench.run.choice import CAPACITY, DRAIN, EARLY_DROP, FULL, RATE, REAPING, STEADY
from ctbench.traffic.generator import LoadUnit


class TableKeywords:
    """A part of the library `ConntrackSLA`, which measures and judges."""

    @keyword(tags=["measure"])
    def measure_table_capacity(self, profile: str) -> Record:
        """Opens as many connections as the SLA promises, holds them, asks each something, and returns the record.

        The DUT's own count of its table has to be the generator's, to the connection, before, between and after. A
        campaign may try more than the SLA promises (``table.connections``). Skips the test where the traffic generator
        holds no connections, and where the host's limit or this machine's memory does not suffice.

        Example:
        | Use Topology    ovs-dpdk    conntrack    timeout_s=120
        | Measure Table Capacity    held
        """
        return self._measure(profile, "connections", CAPACITY)

    @keyword(tags=["measure"])
    def measure_table_steady_state(self, profile: str) -> Record:
        """Offers connections of the profile's lifetime at the campaign's rates (``table.steady``) for longer than they
        are remembered, and returns the record.

        The table settles at rate x (lifetime + timeout); what is judged is how far its level is from that, and that
        nothing is lost. Entries over time are on the page.

        Example:
        | Use Topology    ovs-dpdk    conntrack    timeout_s=5
        | Measure Table Steady State    steady
        """
        return self._measure(profile, "connections", STEADY)

    @keyword(tags=["measure"])
    def measure_table_drain(self, profile: str) -> Record:
        """Opens connections (``table.drained`` of the campaign), leaves them, asks the DUT until it counts none, and
        returns the record.

        What is judged is the time from the last packet on. No entry may go before its timeout. Entries over time are on
        the page.

        Example:
        | Use Topology    linux-router    iptables-stateful    timeout_s=5
        | Measure Table Drain    held
        """
        return self._measure(profile, "connections", DRAIN)

    @keyword(tags=["measure"])
    def measure_full_table(self, profile: str) -> Record:
        """Fills the table, opens more, asks those that are open, makes room, opens more again, and returns the record.

        Connections beyond the limit have to be refused, all that are open have to answer, and when there is room new
        ones have to open: what is judged is how soon. The topology says how many entries there are
        (``max_connections``). Skips the test where the DUT's limit cannot be changed.

        Example:
        | Use Topology    ovs-dpdk    conntrack    timeout_s=120    max_connections=10000
        | Measure Full Table    held
        """
        return self._measure(profile, "connections", FULL)

    @keyword(tags=["measure"])
    def measure_table_at_its_limit(self, profile: str) -> Record:
        """Fills the table to a limit that cannot be changed, as that of the Linux kernel, opens more, asks those that
        are open, empties the table, opens some again, and returns the record.

        What is judged is how many of the connections that had opened do not answer any more: the kernel forgets some to
        make room (early drop). Skips the test where fewer connections can be held than the table has entries.

        Example:
        | Use Topology    linux-router    iptables-stateful    timeout_s=120
        | Measure Table At Its Limit    held
        """
        return self._measure(profile, "connections", EARLY_DROP)

    @keyword(tags=["measure"])
    def measure_reaping(self, profile: str) -> Record:
        """Opens connections (``table.expiring`` of the campaign) and leaves them, offers a load with a profile, at half
        of the rate of a closed loop, while they expire, and returns the record.

        What is judged is what that load loses, and its TCP connect time. Alone it has to hold. Entries over time are on
        the page.

        Example:
        | Use Topology    ovs-dpdk    conntrack
        | Measure Reaping    short-lived
        """
        return self._measure(profile, "connections", REAPING)

    @keyword(tags=["judge"])
    def table_should_meet_sla(self) -> None:
        """Fails unless the SLA is met by what was measured of the connection table in this test.

        The message begins with *Missed* or *Not measured* and says why.

        Example:
        | Table Should Meet SLA
        """
        self._judge("table entries")

    def _measure(self, profile: str, kind: LoadUnit | None, what: str = RATE) -> Record:
        raise NotImplementedError

    def _judge(self, what: str) -> None:
        raise NotImplementedError
