"""As test_generator_sanitized.py, for tests that need the machine for themselves."""

import pytest
import sanitized

pytestmark = pytest.mark.usefixtures("compiled_generator")

SANITIZED = {
    "test_generator_connections.py": "server-3-expected4 or reset-3 or held_connections or addresses_behind",
    "test_generator_closed_loop.py": "never_overflows or has_its_turn",
    "test_generator_hold.py": "what_is_open",
}


@pytest.mark.parametrize(("file", "chosen"), SANITIZED.items())
def test_sanitizers_find_nothing(file: str, chosen: str) -> None:
    sanitized.find_nothing(file, chosen)
