"""The YAML model of a host that is reached over SSH."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_serializer

from ctbench.base.network import Address, PathHere, User
from ctbench.base.yaml_files import YamlModel

#: Names that are not entries of `hosts`: namespaces of the run's own on this machine, and this machine itself.
SANDBOX, LOCAL = "sandbox", "local"


def _check_variable(name: str) -> str:
    # What stands there is not shown: it may be the password.
    if not (name.isidentifier() and name.isascii()):
        raise ValueError(
            "not a valid environment variable name.\n  Expected one such as "
            '"CTBENCH_DUT_PASSWORD"; the password itself never stands in a file.'
        )
    return name


class SshConfig(YamlModel):
    """A host of the lab and the login to it: with `key`, else with the password in `password_env`, else with the keys
    of the SSH agent and ~/.ssh."""

    #: Name or address, or an alias of ~/.ssh/config: what that says of it (port, user, key, known hosts, ProxyJump)
    #: holds where this file says nothing.
    address: Address
    port: int = Field(22, ge=1, le=65535)
    #: Empty: as ssh(1) would log in.
    user: User | Literal[""] = ""
    #: Path of a private key on this machine.
    key: PathHere = ""
    #: Environment variable that holds the password of the login; with `key`, the key's passphrase.
    password_env: Annotated[str, AfterValidator(_check_variable)] | None = None
    #: File of known host keys, as ssh(1) keeps it. A host that is not in it is refused.
    known_hosts: PathHere = "~/.ssh/known_hosts"
    #: false: believe any host key, for a testbed whose hosts are reinstalled every day.
    check_host_key: bool = True
    #: Run commands with sudo(8), which must not ask for a password; not needed for root.
    sudo: bool = False
    #: Seconds until a host that does not answer is given up.
    connect_timeout_s: float = Field(10, ge=0.1, le=300)

    @field_serializer("password_env")
    def _kept_to_ourselves(self, _name: str | None) -> None:
        """Write None to records, which hold the testbed: the name may be a password by mistake."""

    @property
    def login(self) -> str:
        """User and host as ssh(1) takes them."""
        return f"{self.user}@{self.address}" if self.user else self.address
