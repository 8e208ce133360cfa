"""Made-up records as JSON documents, and the golden ones, for the tests of what reads and writes them."""

import json
from pathlib import Path
from typing import Any

from ctbench.results.record import Record, from_json

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "golden-run" / "records"
GOLDEN_FILES = sorted(path for path in GOLDEN.glob("*.json") if path.stem != "broken")


def _trial(load: float, completed: int, state: str, reason: str = "") -> dict[str, Any]:
    packets = {"client": completed * 3, "server": completed * 4}
    counts = {name: packets for name in ("tx_packets", "rx_packets", "total_tx_packets", "total_rx_packets")}
    size = {port: count * 78 for port, count in packets.items()}
    return {
        "phase": "search",
        "state": state,
        "reason": reason,
        "problems": [{"severity": "warning", "text": "port0 was slow"}] if state == "bad" else [],
        "latency_us": None,
        "cpu": {"busy_cpus": 0.9, "ns_per_packet": 191.5, "source": "PMD cycles"},
        "trial": counts
        | {
            "load": load,
            "duration_s": 1.0,
            "ramp_up_s": 0.5,
            "wall_s": 1.6,
            "intended": int(load),
            "attempted": int(load),
            "established": completed,
            "completed": completed,
            "failed": {"no_syn_ack": int(load) - completed},
            "tx_bytes": size,
            "rx_bytes": size,
            "active_mean": 100.5,
            "timeline_step_s": 0.5,
            "timeline_active": [3, 4],
            "timeline_completed": [completed // 2, completed // 2],
            "timeline_connect_mean_us": [100.0, None],
            "timeline_connect_max_us": [300.0, None],
            "connect_time_us": {"p50": 100.0, "p90": 150.0, "p99": 200.0, "max": 600.0},
        },
    }


def document(**changes: Any) -> dict[str, Any]:
    """A record of version 2 that has every part: a search for connections per second; `changes` replace keys."""
    return {
        "schema_version": 2,
        "tool_version": "0.1",
        "run_id": "run-1",
        "suite": "OVS-DPDK With Conntrack",
        "test": "1 CPU, 1 Queue, Short-Lived Connections",
        "tags": ["1cpu", "conntrack"],
        "started": "2026-01-02T03:04:05Z",
        "ended": "2026-01-02T03:04:25Z",
        "wall_s": 20.0,
        "traffic_s": 2.0,
        "procedure": "highest-rate",
        "metric": "cps",
        "topology": {"datapath": "ovs-dpdk", "ruleset": "conntrack", "cpus": 1, "rx_queues": 1, "ports": "plain"},
        "profile": {"name": "short-lived", "kind": "connections", "udp_percent": 1},
        "campaign": {"name": "quick", "search": "bisection", "loss_ratio": 0.0002, "settle": 0.5},
        "figures": {
            "cps": {
                "value": 381_000.0,
                "unit": "connections/s",
                "low": 381_000.0,
                "high": 400_000.0,
                "samples": [381_000.0, 385_000.5],
            },
            "pps": {"value": 2_667_000.0, "unit": "packets/s"},
            "loss_ratio": {"value": 0.0, "unit": "ratio"},
            "connect_time_p99": {"value": 0.0002, "unit": "s"},
        },
        "limited_by": "dut",
        "thresholds": [
            {
                "metric": "cps",
                "operator": ">=",
                "limit": 48_200.0,
                "written": ">= 48.2k",
                "to": None,
                "measured": 381_000.0,
                "margin_pct": 690.5,
                "met": True,
            }
        ],
        "floor": {
            "key": "ovs-dpdk/conntrack/1cpu-1rxq",
            "profile": "short-lived",
            "source": "the article",
            "derivation": "",
            "reference": {"figures": {"cps": 48_200.0}, "source": "Open vSwitch 3.0.0, 2022, table 4"},
        },
        "verdict": "met",
        "verdict_reason": "381.0 k/s new connections",
        "margin_pct": 690.5,
        "evidence": {
            "trials": [
                _trial(400_000.0, 360_000, "bad", "10 % of the connections were lost"),
                _trial(381_000.0, 381_000, "good"),
            ],
            "series": [
                {"name": "table_entries", "unit": "connections", "trial": 2, "every_s": 0.1, "values": [1.0, None]}
            ],
            "upper_bound": 400_000.0,
            "ceiling": 900_000.0,
        },
        "environment": {
            "testbed": {"name": "local", "duts": [{"type": "ovs-dpdk"}]},
            "dut": {
                "product": "Open vSwitch 3.1.0",
                "version": "3.1.0",
                "machine": {"cpu_model": "Xeon", "usable_cpus": [0, 1]},
                "memory": {"kind": "no-huge", "megabytes": 1024},
                "placement": {"generator": [0], "pmd": [1]},
                "pmd": {"1": {"busy": 0.9}},
            },
            "generator": {"type": "software", "version": 1},
            "machine": {"cpu_model": "Xeon", "hugepages": [{"size_kb": 2048, "total": 0, "free": 0}], "cpus": 2},
        },
        "pool": {"name": "local#2", "cpus": [0, 1], "suite": 3},
        "notes": ["long-lived-short stood in for long-lived"],
    } | changes


def record(**changes: Any) -> Record:
    """The same, read."""
    return from_json(json.dumps(document(**changes)), "made-up.json")


def changed(path: str, value: Any, whole: dict[str, Any] | None = None) -> bytes:
    """A document with another value at a place such as `environment.dut.version`."""
    whole = document(test="Odd") if whole is None else whole
    part: Any = whole
    *parents, key = path.split(".")
    for parent in parents:
        part = part[int(parent)] if isinstance(part, list) else part.setdefault(parent, {})
    part[int(key) if isinstance(part, list) else key] = value
    return json.dumps(whole).encode()
