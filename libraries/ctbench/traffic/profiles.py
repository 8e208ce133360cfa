"""The traffic profiles of the suite: the software generator's models, read from files of variables/profiles/."""

from pathlib import Path

from ctbench.base.yaml_files import load
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


def load_profile(name_or_path: str | Path) -> ConnectionProfile | PacketProfile:
    """Read a profile by its name below variables/profiles/, or by path. Raise `ConfigError` where it is invalid."""
    profile: ConnectionProfile | PacketProfile = load("profiles", name_or_path, Profile)  # type: ignore[arg-type]
    return profile
