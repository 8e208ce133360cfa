"""The catalogue of rulesets: the description of each, next to its own file.

A ruleset is a file of a tool (`ovs/nat.flows`, `iptables/snat.rules`, `nftables/snat.nft`) and a catalogue entry of the
same name (`ovs/nat.yaml`); `linux/forward.yaml` has no file, because it has no rules. No other file lists rulesets: the
catalogue finds an added file by itself. A ruleset elsewhere becomes known by its path (`add_ruleset`).
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from ctbench.base.errors import ConfigError
from ctbench.base.paths import RULESETS
from ctbench.base.units import did_you_mean, quoted
from ctbench.base.yaml_files import Name, YamlModel, load

#: Family (a folder below resources/rulesets) -> ending of its files. `linux` has none: no rule is loaded.
ENDINGS = {
    "ovs": ".flows",
    "linux": "",
    "iptables": ".rules",
    "ip6tables": ".rules",
    "nftables": ".nft",
    "emulated": ".sh",
}
#: Families whose name is a part of their rulesets' names: iptables-snat, nftables-snat.
NAMED_BY_FAMILY = ("iptables", "ip6tables", "nftables")

Translation = Literal["nothing", "source", "destination"]
Forwards = Literal[4, 6, "any"]


class Described(YamlModel):
    """The entry of a ruleset in the catalogue."""

    #: The ruleset that this one is in other words, by family and file: `ovs/conntrack`. What is not said here is as in
    #: its entry.
    ruleset: str = ""
    #: For people: `Connection tracking and SNAT`.
    title: str = ""
    #: Whether the DUT's connection table is filled.
    tracks: bool = False
    #: Whether packets and bytes of each connection are counted; of Linux (`nf_conntrack_acct`).
    accounts: bool = False
    #: Which addresses are changed.
    translates: Translation = "nothing"
    #: The version of IP that it forwards; `any` where it does not look.
    ip_version: Forwards = 4
    #: Entries at most of a zone of connection tracking, by its number; of Open vSwitch (`dpctl/ct-set-limits`).
    zone_limits: dict[int, Annotated[int, Field(ge=1, le=2**32 - 1)]] = Field(default_factory=dict)
    #: Ports that a NAT has for the connections to one address and port of a server; None: more than a table holds.
    ports: int | None = Field(None, ge=10_000, le=64_512)
    #: Tags of every test with it.
    tags: list[Name] = Field(default_factory=list)

    @model_validator(mode="after")
    def _says_enough(self) -> Self:
        if not self.ruleset and not (self.title and "tracks" in self.model_fields_set):
            raise ValueError("title and tracks are not both there.\n  Expected both, or the ruleset that this one is.")
        return self


class Ruleset(Described):
    """A ruleset of the catalogue, or one from elsewhere."""

    #: As suites, SLA files and records call it: `nat`, `iptables-snat`.
    name: str
    family: str
    #: The rules in the words of their tool; None where there are none.
    rules: Path | None

    @property
    def text(self) -> str:
        """Text of the rules, without the byte order mark that editors of Windows put in front. `ConfigError` where they
        cannot be read, or are not text."""
        assert self.rules is not None
        try:
            return self.rules.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigError(f"{self.rules} cannot be read ({why}).\n  Expected rules, as a text of UTF-8.") from None


def _read(path: Path, family: str, rules: Path | None, known: Mapping[str, Ruleset]) -> Ruleset:
    """Return the ruleset that a catalogue file describes, with the rest from the ruleset that it names. `known`: the
    rulesets read before it."""
    said = load("rulesets", path, Described).model_dump(exclude_unset=True)
    if other := said.get("ruleset"):
        if other not in known:
            raise ConfigError(
                f"{path}: ruleset: {quoted(other)} is not a ruleset.\n  Expected family and name, for example "
                f"ovs/conntrack.{did_you_mean(other, list(known))}"
            )
        said = known[other].model_dump() | said
    name = f"{family}-{path.stem}" if family in NAMED_BY_FAMILY else path.stem
    found = Ruleset.model_validate(said | {"name": name, "family": family, "rules": rules})
    if found.zone_limits and family != "ovs":
        raise ConfigError(
            f"{family}/{path.name}: zone_limits: {family} has no limits of zones.\n  Expected them with rules of Open "
            "vSwitch (.flows)."
        )
    return found


@cache
def catalogue(folder: Path = RULESETS) -> dict[tuple[str, str], Ruleset]:
    """Return all rulesets by family and name. Raise `ConfigError` for a wrong catalogue file, or a ruleset without
    one."""
    known = dict[str, Ruleset]()
    for family, ending in ENDINGS.items():
        for path in sorted((folder / family).glob("*.yaml")):
            rules = path.with_suffix(ending) if ending else None
            if rules is not None and not rules.is_file():
                raise ConfigError(
                    f"{path}: describes a ruleset that is not there.\n  Expected {rules.name} next to it."
                )
            known[f"{family}/{path.stem}"] = _read(path, family, rules, known)
        for rules in sorted((folder / family).glob(f"*{ending}")) if ending else ():
            if not rules.with_suffix(".yaml").is_file():
                raise ConfigError(
                    f"{rules}: is not in the catalogue.\n  Expected {rules.stem}.yaml next to it, with title and"
                    " tracks, as in the rulesets that ship."
                )
    return {(each.family, each.name): each for each in known.values()}


#: Rulesets that lie elsewhere, as `add_ruleset` found them, by family and name.
_added: dict[tuple[str, str], Ruleset] = {}


def add_ruleset(path: Path) -> Ruleset:
    """Make a ruleset outside the catalogue known, with its entry next to it. Raise `ConfigError` for a missing file, a
    missing entry, and a name that another ruleset has."""
    path = path.absolute()
    families = [family for family, ending in ENDINGS.items() if ending and path.name.endswith(ending)]
    if not families or not path.is_file():
        why = "is not a file" if families else "does not end as rules do"
        raise ConfigError(
            f"{path}: {why}.\n  Expected rules of Open vSwitch (.flows), iptables or ip6tables (.rules), nftables "
            "(.nft) or of an emulated machine (.sh)."
        )
    if not re.fullmatch("[a-z0-9][a-z0-9-]*", path.stem):
        raise ConfigError(f"{path}: is not a name.\n  Expected a file name of small letters, digits and dashes.")
    described = path.with_suffix(".yaml")
    if not described.is_file():
        raise ConfigError(
            f"{path}: no entry is next to it.\n  Expected {described.name}, with title and tracks, as in the rulesets "
            "that ship."
        )
    by_file = {
        f"{of}/{name.removeprefix(f'{of}-') if of in NAMED_BY_FAMILY else name}": each
        for (of, name), each in catalogue().items()
    }
    # Two families have rules of the same ending, one for each version of IP.
    family = families[0]
    if len(families) > 1 and _read(described, family, path, by_file).ip_version == 6:
        family = "ip6tables"
    found = _read(described, family, path, by_file)
    other = {**catalogue(), **_added}.get((family, found.name))
    if other and other.rules != path:
        raise ConfigError(f"{path}: {quoted(found.name)} is the name of {other.rules}.\n  Expected a name of its own.")
    _added[family, found.name] = found
    return found


def find_ruleset(families: Sequence[str], name: str, whose: str, folder: Path = RULESETS) -> Ruleset:
    """Return the ruleset `name` of one of the `families`. Raise `ConfigError` with the known ones. `whose`: the DUT."""
    there = catalogue(folder) | _added
    known = {entry.name: entry for (family, _), entry in there.items() if family in families}
    if name not in known:
        raise ConfigError(
            f"{quoted(name)} is not a ruleset of {whose}.\n  Expected one of: {', '.join(sorted(known))} (in {folder})."
            f"{did_you_mean(name, list(known))}"
        )
    return known[name]
