"""The Linux kernel as DUT needs no root."""

from collections.abc import Callable


def test_linux_works_as_an_ordinary_user_too(as_ordinary_user: Callable[..., None]) -> None:
    as_ordinary_user(
        "test_linux_rulesets.py", "test_linux_topologies.py", "test_linux_life.py", "test_linux_steering.py"
    )
