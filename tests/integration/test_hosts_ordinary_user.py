"""Hosts need no root."""

from collections.abc import Callable


def test_hosts_work_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    as_ordinary_user("test_hosts_contract.py", "test_hosts_sandbox.py")
