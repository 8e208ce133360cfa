"""The commands of client_worker.py for packet profiles: builds the streams of stl_spec.py, starts them, counts.

Runs in the process of client_worker.py, which loads it by its path: standard library and `trex` only.
"""

import time
from typing import Any

Arguments = dict[str, Any]

#: What DPDK calls the counters of a port, whatever its driver.
PORT_COUNTERS = (
    "tx_good_packets", "rx_good_packets", "tx_errors", "rx_errors", "rx_missed_errors", "rx_mbuf_allocation_errors",
)  # fmt: skip
#: What went through a port, for `stl_ports`.
TRAFFIC_COUNTERS = ("tx_good_packets", "rx_good_packets", "tx_good_bytes", "rx_good_bytes")
#: Of TRex as a whole: packets that met a full ring, that it threw away there, that it had no memory for; use of CPUs.
GLOBAL_COUNTERS = ("m_total_queue_full", "m_total_queue_drop", "m_total_alloc_error", "m_cpu_util", "m_rx_cpu_util")


def stl_load(session: Any, streams: list[Arguments]) -> None:
    """Replace what TRex has by these streams, which end if they still run. The new ones' counters begin at 0."""
    client, api = session.require(), session.load("stl")
    client.stop(ports=session.ports, rx_delay_ms=200)  # what is under way is not for the new ones
    client.remove_all_streams(ports=session.ports)
    for number, port in enumerate(session.ports):
        built = [built for stream in streams if stream["port"] == number for built in _streams(api, stream)]
        if built:
            client.add_streams(built, ports=[port])
    session.memory["groups"] = [stream["group"] for stream in streams]
    session.memory["senders"] = sorted({session.ports[stream["port"]] for stream in streams})


def stl_start(session: Any) -> Any:
    """Start the streams. When it was asked for and when it was done, on the monotonic clock."""
    asked = time.monotonic()
    session.require().start(ports=session.memory["senders"], force=True)
    return {"from_s": asked, "to_s": time.monotonic()}


def stl_stats(session: Any) -> Any:
    """All counters, exact, and between which moments of the monotonic clock those of the streams were read."""
    client = session.require()
    begun = time.monotonic()
    # Not through get_pgid_stats(), which keeps a maximum of its own.
    found = client.pgid_stats.get_stats(session.memory["groups"], relative=False)
    ended = time.monotonic()
    groups = {}
    for group in session.memory["groups"]:
        counted = found.get("flow_stats", {}).get(group)
        if counted is not None:
            groups[group] = {name: counted[name]["total"] for name in ("tx_pkts", "rx_pkts")}
            groups[group].update(_plain(found.get("latency", {}).get(group, {})))
    # The ports' usual counters are up to half a second old; the driver's are not.
    ports = [client.get_xstats(port) for port in session.ports]
    client.global_stats.update_sync(client.conn.rpc)
    return {
        "from_s": begun,
        "to_s": ended,
        "groups": groups,
        "ports": [{name: port[name] for name in PORT_COUNTERS if name in port} for port in ports],
        "global": {name: client.global_stats.latest_stats.get(name, 0) for name in GLOBAL_COUNTERS},
    }


def stl_ports(session: Any) -> Any:
    """The driver's counters of each port, whether streams run or not."""
    client = session.require()
    return [{name: value for name, value in client.get_xstats(port).items() if name in TRAFFIC_COUNTERS}
            for port in session.ports]  # fmt: skip


def stl_stop(session: Any, linger_s: float) -> None:
    """Stop sending; go on counting what arrives for `linger_s` seconds."""
    session.require().stop(ports=session.memory["senders"], rx_delay_ms=int(1000 * linger_s))


def _streams(api: Any, stream: Arguments) -> list[Any]:
    """A stream's bursts: what warms up, then what counts."""
    program = [_instruction(api, instruction) for instruction in stream["program"]]
    frame = bytes.fromhex(stream["frame"])
    group, pps = stream["group"], stream["pps"]
    counts = (api.STLFlowLatencyStats if stream["latency"] else api.STLFlowStats)(pg_id=group)

    def burst(name: str, packets: int, **more: Any) -> Any:
        return api.STLStream(
            name=name,
            packet=api.STLPktBuilder(pkt_buffer=frame, vm=api.STLScVmRaw(list(program)), remove_fcs=False),
            mode=api.STLTXSingleBurst(pps=pps, total_pkts=packets),
            **more,
        )

    counted = f"counted {group}"
    if not stream["warm_up_packets"]:
        return [burst(counted, stream["packets"], isg=stream["delay_us"], flow_stats=counts)]
    return [
        burst(f"warm-up {group}", stream["warm_up_packets"], isg=stream["delay_us"], next=counted),
        burst(counted, stream["packets"], self_start=False, flow_stats=counts),
    ]


def _instruction(api: Any, instruction: Arguments) -> Any:
    arguments = dict(instruction)
    return getattr(api, arguments.pop("do"))(**arguments)


def _plain(value: Any) -> Any:
    """What JSON can hold of it; TRex marks what it does not know with objects of its own, which are left out."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if isinstance(item, dict | int | float | str)}
    return value
