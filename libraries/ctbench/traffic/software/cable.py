"""A cable: both ends of a memif in this process, no DUT between them. Shows what the generator can do by itself."""

import tempfile
import threading
from pathlib import Path

from ctbench.base.errors import GeneratorError
from ctbench.traffic.software.memif import MemifPort, RingPlan, connect
from ctbench.traffic.software.memif_server import MemifServer


def cable(plan: RingPlan) -> tuple[MemifPort, MemifPort]:
    """The client's and the server's end of a memif with the rings of `plan`, joined directly. Leaves no file behind."""
    with tempfile.TemporaryDirectory(prefix="ctbench-") as folder:
        server = MemifServer(Path(folder) / "cable.sock")
        accepted: list[MemifPort] = []
        thread = threading.Thread(target=lambda: accepted.append(server.accept()), daemon=True)
        thread.start()
        try:
            client = connect(Path(folder) / "cable.sock", plan)
            thread.join(5)
        finally:
            server.close()
    if not accepted:
        client.close()
        raise GeneratorError("The two ends of the cable did not meet.")
    return client, accepted[0]
