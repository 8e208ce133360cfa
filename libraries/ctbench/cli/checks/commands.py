"""The checks of this project, and the programs of the .venv behind them: written here and nowhere else."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One check. It passes where each of its programs ends with 0."""

    summary: str
    #: Names of programs of the .venv, with their arguments.
    programs: tuple[tuple[str, ...], ...]
    #: Whether they take more arguments, which come before `last`.
    takes_arguments: bool = False
    last: tuple[str, ...] = ()
    #: Whether they import our libraries by PYTHONPATH. To the others that would hide what does not find them.
    imports_ours: bool = False


_PROMISES = ("python", "-m", "ConntrackSLA.check_promises")

CHECKS = {
    "lint": Check(
        "style and layout of the sources and the suites, imports, promises",
        (
            ("ruff", "check", "."),
            ("ruff", "format", "--check", "."),
            ("robocop", "check", "suites", "resources"),
            ("robocop", "format", "--check", "suites", "resources"),
            ("lint-imports", "--no-cache"),
            _PROMISES,
        ),
        imports_ours=True,
    ),
    "types": Check("types of the sources (mypy)", (("mypy",),), takes_arguments=True),
    "promises": Check("rows of suites without a floor, and floors without a row", (_PROMISES,), imports_ours=True),
    "dryrun": Check(
        "the suites can be read and run (robot --dryrun)",
        (
            (
                "robot", "--pythonpath", "libraries", "--prerunmodifier", "ConntrackSLA.tags", "--dryrun",
                "--output", "NONE", "--log", "NONE", "--report", "NONE", "--console", "dotted",
            ),
        ),
        takes_arguments=True,
        last=("suites",),
    ),
    "unit": Check("tests that need nothing but Python (pytest)", (("pytest", "tests/unit"),), takes_arguments=True),
    "integration": Check(
        "tests with the real Open vSwitch and Linux (pytest)", (("pytest", "tests/integration"),), takes_arguments=True
    ),
    "docs": Check(
        "write docs/keywords.html", (("libdoc", "--pythonpath", "libraries", "ConntrackSLA", "docs/keywords.html"),)
    ),
}  # fmt: skip
