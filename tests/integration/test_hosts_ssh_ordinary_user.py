"""A host over SSH needs no root, neither here nor there."""

from collections.abc import Callable


def test_hosts_over_ssh_work_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    as_ordinary_user("test_hosts_ssh_login.py", "test_hosts_ssh_broken.py", "test_hosts_ssh_files.py")


def test_duts_over_ssh_work_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    as_ordinary_user("test_hosts_ssh_dut.py")
