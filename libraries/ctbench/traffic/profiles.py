"""The traffic profiles of the suite: the software generator's models, read from files of variables/profiles/."""

from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.base.units import quoted
from ctbench.base.yaml_files import load, names
from ctgen import IMIX, PROBE_HEADERS, ConnectionProfile, PacketProfile, Profile, largest_frame, last_word

__all__ = [
    "IMIX",
    "PROBE_HEADERS",
    "ConnectionProfile",
    "PacketProfile",
    "Profile",
    "largest_frame",
    "last_word",
    "load_profile",
]


#: Profiles that were read by a path, by their names.
_by_path: dict[str, tuple[str, ConnectionProfile | PacketProfile]] = {}


def load_profile(name_or_path: str | Path) -> ConnectionProfile | PacketProfile:
    """Read a profile by its name below variables/profiles/, or by path. Raise `ConfigError` where it is invalid, or
    where another profile has its name, by which floors, ceilings and records know it."""
    profile: ConnectionProfile | PacketProfile = load("profiles", name_or_path, Profile)  # type: ignore[arg-type]
    if (name := profile.name) == str(name_or_path):
        return profile
    shipped = (f"variables/profiles/{name}.yaml", load_profile(name)) if name in names("profiles") else None
    path = str(name_or_path)
    file, other = shipped or _by_path.get(name, (path, profile))
    if other != profile and file != path:
        raise ConfigError(f"{path}: name: {quoted(name)} is the name of {file}.\n  Expected a name of its own.")
    _by_path[name] = path, profile
    return profile
