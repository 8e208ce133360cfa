"""A stand-in for t-rex-64, where there is none: it listens where its configuration says, and says version and mode."""

import signal
import sys
from pathlib import Path
from typing import Any

import yaml
import zmq


def home_with_a_stand_in(folder: Path) -> str:
    """A folder as that of t-rex-64, whose program is this file."""
    scripts = folder / "scripts"
    scripts.mkdir()
    (folder / "VERSION").write_text("v3.08\n")
    program = scripts / "_t-rex-64"
    libraries = f"PYTHONHOME={sys.base_prefix} PYTHONPATH={Path(zmq.__file__).parents[1]}"
    program.write_text(f'#!/bin/bash\n{libraries} exec -a _t-rex-64 {sys.executable} {__file__} "$@"\n')
    program.chmod(0o755)
    return str(scripts)


def interrupted(*_: Any) -> None:
    """What the real one says then."""
    sys.exit("received signal SIGINT")


def main() -> None:
    """Listen until the end."""
    signal.signal(signal.SIGINT, interrupted)
    (configuration,) = yaml.safe_load(Path(sys.argv[sys.argv.index("--cfg") + 1]).read_text())
    if configuration["low_end_core"] == 999:
        sys.exit("ERROR: there is no CPU 999")
    for number, port in enumerate(configuration["port_info"]):
        if "default_gw" in port:
            print(f"Failed resolving dest MAC for default gateway:{port['default_gw']} on port {number}", flush=True)
    mode = "ASTF" if "--astf" in sys.argv else "STL"
    with zmq.Context() as context, context.socket(zmq.REP) as rpc:
        rpc.bind(f"tcp://*:{configuration['zmq_rpc_port']}")
        while True:
            request = rpc.recv_json()
            rpc.send_json({"jsonrpc": "2.0", "id": request["id"], "result": {"version": "v3.08", "mode": mode}})


if __name__ == "__main__":
    main()
