"""The keywords that measure and judge the control plane, and what it shares with the threads that forward."""

from robot.api.deco import keyword

from ctbench.results.record import Record
from ctbench.run.choice import CHURN, COLLECT, CONTENTION, DUMP, FORCE, HELD_DUMP, RATE, REVALIDATE, UPCALLS
from ctbench.traffic.generator import LoadUnit


class ControlPlaneKeywords:
    """A part of the library `ConntrackSLA`, which measures and judges."""

    @keyword(tags=["measure"])
    def measure_table_dump(self, profile: str) -> Record:
        """Prints the connection table again and again beside a load with a profile, and returns the record.

        The load is offered alone first (``control_plane`` of the campaign): what it loses then says that this testbed
        does not hold it. The record has the times of the dumps, the entries in one, and what the load lost meanwhile.

        Example:
        | Use Topology    ovs-dpdk    conntrack
        | Measure Table Dump    short-lived
        """
        return self._measure(profile, None, DUMP)

    @keyword(tags=["measure"])
    def measure_dump_of_held_connections(self, profile: str) -> Record:
        """Opens as many connections as the SLA promises to be held, prints the connection table again and again while
        they are asked something, and returns the record.

        The DUT's own count has to be the generator's before and after. The record has the times, and how many messages
        were not answered meanwhile. The topology has to remember them for long enough (``timeout_s``). Skips the test
        where the traffic generator holds no connections, and where the host's limit or memory does not suffice.

        Example:
        | Use Topology    ovs-dpdk    conntrack    timeout_s=300
        | Measure Dump Of Held Connections    held
        """
        return self._measure(profile, "connections", HELD_DUMP)

    @keyword(tags=["measure"])
    def measure_port_churn(self, profile: str) -> Record:
        """Adds and deletes ports of the bridge in a loop beside a load with a profile, and returns the record.

        Ten ports come and go, one after the other, besides those that stay (``idle_ports`` of `Use Topology`). The
        record has the times of both, the longest time in which the main thread answered nobody, and what the load lost
        meanwhile.

        Example:
        | Use Topology    ovs-dpdk    conntrack    idle_ports=128
        | Measure Port Churn    short-lived
        """
        return self._measure(profile, None, CHURN)

    @keyword(tags=["measure"])
    def measure_revalidation(self, profile: str, forced: bool = False) -> Record:
        """Asks Open vSwitch again and again how long it took to look at all flows of its datapath, beside a load that
        keeps them alive, and returns the record.

        With ``forced``, it is made to look at all of them ten times a second, as after a change of its rules.
        The topology needs a ruleset with a datapath flow for each client, ``flow-each``; ``revalidators`` of `Use
        Topology` says how many threads look.

        Example:
        | Use Topology    ovs-dpdk    flow-each    revalidators=2
        | Measure Revalidation    udp-64-10k
        | Measure Revalidation    udp-64-10k    forced=True
        """
        return self._measure(profile, "packets", FORCE if forced else REVALIDATE)

    @keyword(tags=["measure"])
    def measure_statistics(self, profile: str) -> Record:
        """Measures the CPU time in which Open vSwitch collects the statistics of all interfaces beside a load with a
        profile, and returns the record.

        It does so each 5 s by itself, so the trial takes 16 s or more. The time is seen from outside, as the largest
        burst of the main thread's CPU time in each 5 s.

        Example:
        | Use Topology    ovs-dpdk    conntrack    idle_ports=1024
        | Measure Statistics    short-lived
        """
        return self._measure(profile, None, COLLECT)

    @keyword(tags=["measure"])
    def measure_lock_share(self, profile: str) -> Record:
        """Samples where a thread that forwards is, again and again, at the highest load with a profile, and returns the
        record.

        The load is a closed loop, in a trial made for it: no rate is judged by that trial. The record has the share of
        each function, and of those that acquire, release or await a lock. Samples are perf's where the kernel allows
        them, else the thread is stopped for each.

        Example:
        | Use Topology    ovs-dpdk    conntrack    cpus=8    rx_queues=8
        | Measure Lock Share    long-lived
        """
        return self._measure(profile, None, CONTENTION)

    @keyword(tags=["measure"])
    def measure_new_flows(self, profile: str) -> Record:
        """Searches the highest rate with a profile each of whose packets is the first of its flow, and returns the
        record with the datapath flows that were made per second.

        The topology needs a ruleset with a datapath flow for each client, ``flow-each``, and the profile connections of
        one request and one reply. ``handlers`` of `Use Topology` says how many threads answer, where those that
        forward do not do so by themselves.

        Example:
        | Use Topology    ovs-dpdk    flow-each    handlers=1
        | Measure New Flows    udp-exchange
        """
        return self._measure(profile, "connections", UPCALLS)

    @keyword(tags=["judge"])
    def control_plane_should_meet_sla(self) -> None:
        """Fails unless the SLA is met by what was measured of the control plane in this test.

        The message begins with *Missed* or *Not measured* and says why.

        Example:
        | Control Plane Should Meet SLA
        """
        self._judge("times of the control plane")

    def _measure(self, profile: str, kind: LoadUnit | None, what: str = RATE) -> Record:
        raise NotImplementedError

    def _judge(self, what: str) -> None:
        raise NotImplementedError
