"""The text of an SLA file that a calibration writes, and the file that was measured with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from ctbench.base.plain_text import one_line

#: The entries of an SLA file as YAML has them: by topology key, then by profile.
Entries = Mapping[str, Mapping[str, Mapping[str, Any]]]

#: What a whole SLA file promises of every floor, and the new one as well.
_OF_ALL = ("loss_ratio", "packet_loss_ratio", "connect_time_p99", "of_build")


@dataclass(frozen=True)
class Stock:
    """The SLA file that was measured with. What no floor of this machine replaces stays as it is there."""

    name: str
    of_all: Mapping[str, Any]
    entries: Entries

    @classmethod
    def read(cls, name: str, text: str) -> "Stock":
        """Take the entries from the text of an SLA file that is known to be valid (`load` has read it before)."""
        data = yaml.safe_load(text)
        floors = data.get("floors") or {key: value for key, value in data.items() if "/" in str(key)}
        source = {"source": data["source"]} if "source" in data else {}
        return cls(
            name,
            {key: data[key] for key in _OF_ALL if key in data},
            {key: {profile: source | entry for profile, entry in profiles.items()} for key, profiles in floors.items()},
        )


def yaml_lines(data: Mapping[str, Any]) -> list[str]:
    """As YAML has it."""
    return yaml.safe_dump(dict(data), sort_keys=False, width=10_000, allow_unicode=True).splitlines() if data else []


def scalar(text: str) -> str:
    """A text as YAML has it, in quotes only where it would be read as something else (`on`, `2024`, `a: b`)."""
    return yaml.safe_dump(text, width=10_000, allow_unicode=True).removesuffix("\n").removesuffix("\n...")


def line_of(value: object) -> str:
    """A fact of a record for a comment, which ends with its line."""
    return one_line(str(value or "unknown"))


def count(number: int, thing: str) -> str:
    """`1 run`, `5 runs`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
