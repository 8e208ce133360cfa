"""How the connection table is measured: `table` of a campaign."""

from pydantic import Field

from ctbench.base.errors import LeftForTheNight
from ctbench.base.quantities import Connections, Load, Pause, TrialDuration
from ctbench.base.yaml_files import YamlModel


class TableSettings(YamlModel):
    """How connections are opened, held, and forgotten."""

    #: Connections opened per second at most: a rate that every DUT keeps. Only so many are under way that no ring
    #: overflows, so a slower DUT sets its own.
    opened_per_s: Load = 100_000.0
    #: How long they stay open with nothing sent, before each is asked something.
    hold: Pause = 1.0
    #: So many are tried to be held, where a floor promises fewer; None: as many as it promises.
    connections: Connections | None = None
    #: So many are left to expire.
    drained: Connections = 50_000.0
    #: So many are left to expire beside a load.
    expiring: Connections = 1_000_000.0
    #: Connections per second at which the table settles, one after the other.
    steady: list[Load] = Field(default_factory=lambda: [5_000.0], min_length=1)
    #: A test that may take longer, because the DUT sweeps its table so seldom, is left out; None: none is.
    longest: TrialDuration | None = None

    def require_time(self, seconds: float, what: str) -> None:
        """Raise `LeftForTheNight` where `what` may take longer than the campaign allows."""
        if self.longest is not None and seconds > self.longest:
            raise LeftForTheNight(
                f"{what} takes up to {seconds:.0f} s, because the DUT sweeps its table so seldom, and the campaign "
                f"allows {self.longest:g} s (table.longest): choose a campaign for a night, such as characterise."
            )
