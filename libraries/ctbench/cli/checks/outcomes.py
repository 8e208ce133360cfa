"""What became of each test in several runs of pytest, and one closing line for all of them in pytest's own form."""

import json
import shutil
from collections import Counter
from pathlib import Path

#: From the worst: what a test is that had several outcomes, and the order of the closing line.
WORST_FIRST = ("error", "failed", "xpassed", "passed", "xfailed", "skipped")
CLOSING_ORDER = ("failed", "passed", "skipped", "xfailed", "xpassed", "error")


class Outcomes:
    """Of tests, by user: `""` is the ordinary one, or the only one."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], str] = {}
        self._root_too: set[str] = set()

    def read(self, file: Path, user: str) -> None:
        """Take in what tests/conftest.py wrote."""
        for text in file.read_text().splitlines():
            try:
                line = json.loads(text)
            except ValueError:  # a process that was killed while it wrote
                continue
            if line["when"] in ("setup", "teardown") and line["outcome"] == "passed":
                continue
            key = (line["test"], user)
            self._found[key] = worst([line["outcome"], *([self._found[key]] if key in self._found else [])])
            if line["root_too"]:
                self._root_too.add(line["test"])

    def for_root(self) -> list[str]:
        """Tests that root has to run as well: those that are marked, and those that an ordinary user had to skip."""
        return [
            test
            for (test, user), found in self._found.items()
            if not user and (test in self._root_too or found == "skipped")
        ]

    def ran_as(self, user: str) -> int:
        """How many tests ran as this user, and were not skipped."""
        return sum(found != "skipped" for (_, each), found in self._found.items() if each == user)

    def failures(self) -> list[str]:
        """A line for each test that failed, as pytest writes it."""
        return [
            f"{found.upper()} {test}{' (as root)' if user else ''}"
            for (test, user), found in self._found.items()
            if found in ("failed", "error")
        ]

    def counts(self) -> Counter[str]:
        """How many tests ended how. One that ran twice counts once: failed if it failed for any user, skipped if all
        skipped it."""
        by_test: dict[str, list[str]] = {}
        for (test, _), found in self._found.items():
            by_test.setdefault(test, []).append(found)
        return Counter(worst(found) for found in by_test.values())

    def closing_line(self, more_errors: int, seconds: float) -> str:
        """In the form of pytest's; `more_errors`: of what is no test."""
        counts = self.counts()
        counts["error"] += more_errors
        words = [f"{counts[name]} {name}" for name in CLOSING_ORDER if counts[name]] or ["no tests ran"]
        if counts["error"] > 1:
            words[-1] += "s"
        text = f" {', '.join(words)} in {duration(seconds)} "
        return text.center(shutil.get_terminal_size().columns, "=")


def worst(outcomes: list[str]) -> str:
    return min(outcomes, key=WORST_FIRST.index)


def duration(seconds: float) -> str:
    """As pytest writes it: `78.25s (0:01:18)`."""
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{seconds:.2f}s" + (f" ({hours}:{minutes:02}:{int(seconds) % 60:02})" if seconds >= 60 else "")
