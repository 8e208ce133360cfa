"""A cable: both ends of a memif in this process, no DUT between them. Shows what the generator can do by itself."""

import socket
import threading

from ctbench.base.errors import GeneratorError
from ctbench.traffic.software.memif import MemifPort, RingPlan, check_processor, join
from ctbench.traffic.software.memif_server import serve

TIMEOUT_S = 5.0


def cable(plan: RingPlan) -> tuple[MemifPort, MemifPort]:
    """The client's and the server's end of a memif with the rings of `plan`, joined directly: no file is made."""
    check_processor()
    plan.check()
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    near.settimeout(TIMEOUT_S)
    far.settimeout(TIMEOUT_S)
    served: list[MemifPort] = []
    thread = threading.Thread(target=lambda: served.append(serve(far, "cable")), daemon=True)
    thread.start()
    client = join(near, plan, "cable")
    thread.join(TIMEOUT_S)
    if not served:
        client.close()
        raise GeneratorError("The two ends of the cable did not meet.")
    return client, served[0]
