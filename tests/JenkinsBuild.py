"""What the Jenkinsfile says, in parts that run without Jenkins: the environment of a build's shell, the shell lines of
its steps, and what a build becomes by the status of its measurement. A library of Robot Framework as well."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Jenkinsfile").read_text()
#: The parameters of a build that was given none: the first choice, and the defaults.
DEFAULTS = dict(re.findall(r"(?:choice|string)\(name: '(\w+)', (?:choices: \[|defaultValue: )'(\w*)'", TEXT))


def environment(**parameters: str) -> dict[str, str]:
    """What the shell of a build finds. Of the parameters only what the pipeline itself sets: Jenkins adds none to the
    first build of a job (JENKINS-40574), and leaves out what is empty (hudson.EnvVars.override)."""
    block = TEXT.split("    environment {\n")[1].split("    }\n")[0]
    given = DEFAULTS | parameters
    made = {
        name: re.sub(r"\$\{params\.(\w+)\}", lambda found: given[found[1]], value)
        for name, value in re.findall(r'^ +(\w+) = "(.*)"$', block, re.MULTILINE)
    }
    return {"PATH": "/usr/bin:/bin", "BUILD_NUMBER": "13"} | {name: value for name, value in made.items() if value}


def body(function: str) -> str:
    return TEXT.split(f"def {function}(")[1].split("\n}\n")[0]


def shell_lines(label: str) -> str:
    """Those of a step, by its label, or of the one that keeps the history."""
    if label == "History":
        return TEXT.split("stage('History')")[1].split("sh '''")[1].split("'''")[0]
    return TEXT.split(f"label: '{label}', returnStatus: true, script: '''")[1].split("'''")[0]


def result_of(status: int) -> str:
    """What a build becomes by what the measurement ends with."""
    case = re.split(rf"case {status}:", body("judge"))[1].split("break")[0]
    return "FAILURE" if "fail(" in case else "UNSTABLE" if "unstable(" in case else "SUCCESS"


#: In the place of ./run: `sla` on the simulated testbed, with suites that are made for these tests.
_RUN = """#!/bin/sh
case "$1" in sla) shift; exec {python} {simulated} "$@" {suites};; esac
exec {python} {program} "$@"
"""


class JenkinsBuild:
    """One build of the job, in a workspace."""

    ROBOT_LIBRARY_SCOPE = "TEST"

    def __init__(self) -> None:
        self._parameters: dict[str, str] = {}
        self._boxes: set[str] = set()
        self._workspace = Path()
        self._status: int | None = None

    def begin_a_build(self, workspace: str, suites: str, *boxes: str, **parameters: str) -> None:
        """Of a new job: no parameter is in the environment. ``boxes`` are the parameters that are ticked."""
        self._workspace, self._parameters, self._boxes = Path(workspace), parameters, set(boxes)
        self._workspace.mkdir(parents=True)
        (self._workspace / "test_lists").symlink_to(ROOT / "test_lists")
        libraries = ROOT / "libraries"
        run = _RUN.format(
            python=sys.executable,
            suites=suites,
            simulated=ROOT / "tests" / "acceptance" / "simulated_sla.py",
            program=libraries / "ctbench" / "cli" / "__main__.py",
        )
        (self._workspace / "run").write_text(run)
        (self._workspace / "run").chmod(0o755)

    def do_step(self, label: str) -> int:
        """The shell lines of a step; the status that they end with, and what they say in the log."""
        own = {"PYTHONPATH": f"{ROOT / 'libraries'}{os.pathsep}{ROOT / 'tests'}", "CONNTRACK_SLA_RESULTS": "results"}
        done = subprocess.run(
            ["sh", "-e", "-c", shell_lines(label)], env=environment(**self._parameters) | own, cwd=self._workspace,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip
        print(done.stdout)
        if label == "Measure":
            self._status = done.returncode
        return done.returncode

    def result(self) -> str:
        """What the build is: by its status, and by what the pipeline asks of a gate besides."""
        found = result_of(self._status)
        asked = DEFAULTS | self._parameters
        rule = (
            r"if \(params\.TEST_LIST == 'gate' && !params\.CANDIDATE\) \{(?s:.*?)if \(!params\.(\w+)\) \{\s+unstable\("
        )
        box = re.search(rule, TEXT)
        alone = box and asked["TEST_LIST"] == "gate" and not asked["CANDIDATE"] and box[1] not in self._boxes
        return "UNSTABLE" if alone and found == "SUCCESS" else found
