"""TRex behind the TrafficGenerator interface: ASTF for connections, STL for packets."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ctbench.base.errors import GeneratorError, MissingResource
from ctbench.hosts.local import Owner
from ctbench.traffic.generator import TrafficGenerator, Trial
from ctbench.traffic.loads import Hold, Load, Rate
from ctbench.traffic.profiles import ConnectionProfile, PacketProfile
from ctbench.traffic.trex import astf, stl
from ctbench.traffic.trex.client import TrexRefused, TrexWorker
from ctbench.traffic.trex.config import concurrent_flows, lost_flows
from ctbench.traffic.trex.held import HeldByTrex, cannot_hold
from ctbench.traffic.trex.server import Mode, Place, TrexServer

#: Seconds that the client gets to load, to connect and to take the ports.
CONNECT_S = 30.0
#: What the record says of connections that are held.
_ASKED = (
    "TRex asks each connection that it holds {seconds:g} s after all were opened, because it has to be told before; "
    "what gets lost it sends again, and such a connection has failed."
)


class TrexTrafficGenerator(TrafficGenerator):
    """TRex as a traffic generator. The first trial starts the server, in the mode that the profile needs."""

    offers: frozenset[type[Load]] = frozenset({Rate, Hold})

    def __init__(self, server: TrexServer, worker: TrexWorker, ports: Sequence[int] = (0, 1)) -> None:
        """`ports`: TRex' numbers, client side first."""
        self._server = server
        self._worker = worker
        self._ports = list(ports)
        #: Mode and server that the client is connected to; None when it is not.
        self._connected: tuple[str, dict[str, object]] | None = None
        #: What the client was told of the server and its ports.
        self._found: dict[str, object] = {}
        self._loaded: astf.Spec | None = None
        self._notes: list[str] = []

    def run_trial(self, profile: ConnectionProfile | PacketProfile, load: Load, duration_s: float) -> Trial:
        """Run a trial. After a `GeneratorError` the next trial connects again, and restarts the server where it is
        ours."""
        _require_profile(profile.name, unsupported(profile))
        assert isinstance(load, Rate), "what is held is asked for by hold, and it offers nothing else"
        with self._mishaps():
            if isinstance(profile, PacketProfile):
                self._notes = stl.notes(profile)
                self._connect("stl", 0)
                return stl.run_trial(self._worker, profile, load.per_s, duration_s, len(self._ports) // 2)
            self._notes = [*astf.limitations(profile), *astf.measures(profile)]
            self._connect("astf", concurrent_flows(profile, load.per_s), lost_flows(load.per_s))
            self._load(astf.astf_spec(profile))
            return astf.run_trial(self._worker, self._ports, profile, load.per_s, duration_s)

    def hold(self, profile: ConnectionProfile, load: Hold) -> HeldByTrex:
        """Hold connections. TRex sends their messages at times that are set before it opens them."""
        _require_profile(profile.name, unsupported(profile) or cannot_hold(profile, load))
        self._notes = [*astf.limitations(profile), _ASKED.format(seconds=load.asked_after_s)]
        with self._mishaps():
            self._connect("astf", load.connections)
        return HeldByTrex(self._worker, self._ports, profile, load, self._let_go)

    @contextmanager
    def _mishaps(self) -> Iterator[None]:
        """Close the client after a trial that breaks."""
        try:
            yield
        except BaseException as error:
            self._let_go(error)
            raise

    def _let_go(self, error: BaseException) -> None:
        """Close the client, which ends the traffic, after Ctrl-C too. Where the server has died, raise a
        `GeneratorError` that names it."""
        died = isinstance(error, GeneratorError) and self._connected is not None and not self._server.is_running()
        said = self._server.log_excerpt().rstrip(".") if died else ""
        self._disconnect()
        if died:
            raise GeneratorError(f"TRex ended in the middle of a trial{said and f': {said}'}. ({error})") from error

    def snapshot(self) -> dict[str, object]:
        """Return the facts of the server, the client and the ports, and what TRex does differently from the profile."""
        return {"type": "trex", **self._found, "server": self._server.snapshot(), "notes": list(self._notes)}

    def close(self) -> None:
        """End the traffic, release the ports, and end the server where it is ours. May be called twice."""
        self._disconnect()
        self._server.stop()

    def _connect(self, mode: Mode, flows: int, lost: int = 0) -> None:
        """Start the server in `mode` and connect the client to it, unless both are so already."""
        runs = self._connected is not None and self._server.is_running()
        if self._connected and self._connected[0] != mode:
            self._disconnect()  # before the server goes, which it may do to come back in the other mode
        place = self._server.start(mode, flows, lost)
        now = (mode, self._server.snapshot())
        if runs and self._worker.is_running and self._connected == now:
            return
        self._disconnect()
        self._worker.start()
        found, client = self._take_ports(mode, place), self._worker.client.version
        # Pages show `version`, and figures may depend on either.
        both = f"{found['version']}, client {client or 'of an unknown version'}"
        self._found = {**found, "version": both, "client": {"version": client}}
        self._connected = now

    def _take_ports(self, mode: str, place: Place, force: bool = False) -> dict[str, object]:
        """Connect the client and acquire the ports. `force`: from a killed run of ours that still holds them, or
        from the client before, which TRex answered too late to release them."""
        try:
            answer: dict[str, object] = self._worker.call(
                "connect", CONNECT_S, mode=mode, ports=self._ports, user=str(Owner.myself()), force=force, **place,
            )  # fmt: skip
        except TrexRefused as refused:
            owners = [Owner.parse(owner) for owner in refused.owners]
            ours = (owner and (owner.is_gone() or owner == Owner.myself()) for owner in owners)
            if force or not owners or not all(ours):
                raise
            return self._take_ports(mode, place, force=True)
        return answer

    def _load(self, spec: dict[str, Any]) -> None:
        """Give TRex the profile, unless it has it: all trials of a search use the same one."""
        if self._loaded != spec:
            self._loaded = None
            self._worker.call("astf_load", astf.LOAD_S, spec=spec)
            self._loaded = spec

    def _disconnect(self) -> None:
        self._connected = self._loaded = None
        self._worker.close()


def _require_profile(name: str, missing: str) -> None:
    if missing:
        raise MissingResource(
            f"Profile {name} has {missing}, which is offered by the software traffic generator only: use a testbed "
            "with that one."
        )


def unsupported(profile: ConnectionProfile | PacketProfile) -> str:
    """Return what of a profile this adapter does not ask TRex for; empty where it asks for all of it."""
    if isinstance(profile, PacketProfile):
        return "packets of IPv6" if profile.ip_version == 6 else "fragments" if profile.fragments > 1 else ""
    return "half-open connections" if profile.half_open_per_s else ""
