"""A password, from the environment to the SSH server and to sudo, and nowhere else."""

import os

from ctbench.base.errors import ConfigError
from ctbench.hosts.config import SshConfig


class Password:
    """Shows itself to nobody who does not ask: neither printed, nor in a message or a log, nor pickled."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The password itself."""
        return self._text

    def __repr__(self) -> str:
        return "<password>"

    def __reduce__(self) -> str:
        raise TypeError("A password is not written down.")


def _variable(config: SshConfig) -> str:
    if config.password_place == config.password_env:
        return f"the environment variable {config.password_env}, which password_env names,"
    return "the environment variable that password_env names (not shown: is it the password itself?)"


def password_of(name: str, config: SshConfig) -> Password | None:
    """The password of host `name`, from its environment variable; None where the file names none."""
    if config.password_env is None:
        return None
    text = os.environ.get(config.password_env)
    if not text:
        raise ConfigError(
            f"{name}: {_variable(config)} is not set: put the password of {config.user} on "
            f"{config.address} into it before the run; the password itself never stands in a file."
        )
    if "\n" in text:
        raise ConfigError(f"{name}: the password in {config.password_place} has more than one line.")
    return Password(text)
