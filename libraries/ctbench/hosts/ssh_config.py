"""The login that ssh(1) would use for a host of the testbed file. `ssh -G` tells it, which reads ~/.ssh/config and all
that this includes. The testbed file takes precedence, as options of ssh(1) do."""

import os
import pwd
import re
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ctbench.base.errors import ConfigError
from ctbench.hosts.config import SshConfig

#: Seconds that ssh may take to read its files; a `Match exec` of them runs a command.
_LONGEST_S = 10.0
#: What ssh says where it does not work at all here: it asks for the name of its user.
_NAMELESS = "No user exists for uid"


@dataclass(frozen=True)
class Login:
    """The data of a login to a host."""

    #: The entry of the testbed file, with the address, port and user that are meant by it.
    config: SshConfig
    #: Private keys that are there, where the entry names none; and whether the agent may offer its own.
    keys: tuple[str, ...] = ()
    agent: bool = True
    #: Files of known host keys, and the name that the host has there where it is another one.
    known_hosts: tuple[str, ...] = ()
    key_name: str = ""
    #: A command that is the way there (ProxyJump, ProxyCommand); empty: none is needed.
    way: str = ""


def login_of(name: str, config: SshConfig) -> Login:
    """Return the login to host `name`. Raise `ConfigError` with what ssh does not understand in its files. Use the
    testbed file alone where this machine has no ssh, or its user has no name."""
    try:
        said = _ask_ssh(config)
    except FileNotFoundError:
        return _alone(config)
    except subprocess.TimeoutExpired:
        raise ConfigError(
            f"{name}: `ssh -G {config.address}` did not end within {_LONGEST_S:g} s.\n  Expected files of "
            "ssh_config(5) that run nothing which waits (Match exec)."
        ) from None
    if said.returncode != 0:
        if _NAMELESS in said.stderr:
            return _alone(config)
        reason = (said.stderr.strip().splitlines() or ["it says nothing"])[-1].rstrip(".")
        raise ConfigError(
            f"{name}: `ssh {config.address}` would not work: {reason}.\n  Expected what ssh_config(5) allows."
        )
    found: defaultdict[str, list[str]] = defaultdict(list)
    for line in said.stdout.splitlines():
        key, _, value = line.partition(" ")
        found[key].append(value)
    one = {key: "" if values[0] == "none" else values[0] for key, values in found.items()}
    files = [file for key in ("userknownhostsfile", "globalknownhostsfile") for file in one.get(key, "").split()]
    by_file = config.model_fields_set
    return Login(
        config.model_copy(
            update={"address": one["hostname"], "port": int(one["port"]), "user": config.user or one["user"]}
        ),
        keys=tuple(str(path) for each in found["identityfile"] if (path := expanded(each)).is_file()),
        agent=one.get("identitiesonly") != "yes",
        known_hosts=(config.known_hosts, *(files if "known_hosts" not in by_file else ())),
        key_name=one.get("hostkeyalias", ""),
        way=_way(one, config),
    )


def _ask_ssh(config: SshConfig) -> "subprocess.CompletedProcess[str]":
    argv = ["ssh", "-G", *_config_file()]
    argv += ["-p", str(config.port)] if "port" in config.model_fields_set else []
    argv += ["-l", config.user] if config.user else []
    return subprocess.run(
        [*argv, "--", config.address], capture_output=True, text=True, timeout=_LONGEST_S, check=False,
        stdin=subprocess.DEVNULL, errors="replace",
    )  # fmt: skip


def _config_file() -> Sequence[str]:
    """Return the option that names the user's ~/.ssh/config where ssh would read another. ssh takes the home of the
    passwd entry, all other code that of the environment, which a container or a CI job may set."""
    ours = Path(os.path.expanduser("~/.ssh/config"))  # noqa: PTH111 # pathlib raises where there is no home
    with suppress(KeyError):
        if ours.is_file() and str(ours) != f"{pwd.getpwuid(os.getuid()).pw_dir}/.ssh/config":
            return ["-F", str(ours)]
    return []


def _alone(config: SshConfig) -> Login:
    keys = (expanded(f"~/.ssh/id_{kind}") for kind in ("rsa", "ecdsa", "ed25519"))
    return Login(config, keys=tuple(str(path) for path in keys if path.is_file()), known_hosts=(config.known_hosts,))


def _way(one: dict[str, str], config: SshConfig) -> str:
    """Return the command that reaches the host, empty where none is needed: ProxyJump as ssh(1) does it, or
    ProxyCommand with its tokens; ssh_config(5), TOKENS."""
    if jumps := one.get("proxyjump"):
        *before, last = jumps.split(",")
        through = ["-J", ",".join(before)] if before else []
        trust = [] if config.check_host_key else ["-o", "StrictHostKeyChecking=no"]
        target = last if last.startswith("ssh://") else f"ssh://{last}"
        place = f"[{one['hostname']}]:{one['port']}"
        return shlex.join(["ssh", *_config_file(), "-o", "BatchMode=yes", *trust, *through, "-W", place, target])
    user = config.user or one["user"]
    tokens = {"%%": "%", "%h": one["hostname"], "%n": config.address, "%p": one["port"], "%r": user}
    return re.sub("%[%hnpr]", lambda found: tokens[found[0]], one.get("proxycommand", ""))


def expanded(path: str) -> Path:
    """Return a path with the home in place of `~`, where there is a home."""
    return Path(os.path.expanduser(path))  # noqa: PTH111 # pathlib raises where there is no home
