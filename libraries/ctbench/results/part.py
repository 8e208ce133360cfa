"""What all models of a record are based on."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is beyond the years 1 to 9999 in UTC") from None


Utc = Annotated[AwareDatetime, AfterValidator(_in_utc)]


class Part(BaseModel):
    """Base of the record's models: frozen, unknown keys forbidden, no infinities (JSON has none)."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
