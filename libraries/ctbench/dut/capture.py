"""First-failure data capture: what an engineer would ask a DUT that failed, taken before it goes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ctbench.base.errors import TestbedError
from ctbench.hosts.base import Host

#: Seconds for an answer: who holds the first one back is not asked again.
TIMEOUT_S = 5.0
#: Characters kept of an answer, half of them from its beginning and half from its end.
MOST = 65536
#: What the host's kernel said meanwhile, whatever the DUT is; on many machines that is for root only.
KERNEL_LOG = ("dmesg", ("dmesg", "--ctime"))


@dataclass(frozen=True)
class Question:
    """A command whose output is kept."""

    #: Of the file that it is kept in, without its ending.
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    #: Which daemon answers: where it does not, it is not asked again. Empty for what is asked of the kernel.
    daemon: str = ""


def ask(host: Host, questions: Sequence[Question]) -> dict[str, str]:
    """The answers by name, each with its command in front; where it gave no answer, why. Raises nothing: one that fails
    keeps no other one away."""
    silent: set[str] = set()
    return {each.name: f"$ {' '.join(each.argv)}\n{_answer(host, each, silent)}" for each in questions}


def _answer(host: Host, question: Question, silent: set[str]) -> str:
    if question.daemon in silent:
        return f"(not asked: {question.daemon} did not answer before)\n"
    try:
        done = host.run(question.argv, TIMEOUT_S, check=False, env=dict(question.env))
    except TestbedError as error:
        silent |= {question.daemon} - {""}
        return f"(no answer: {error})\n"
    said = shortened(done.stdout) + (f"\n(stderr) {shortened(done.stderr)}" if done.stderr.strip() else "")
    return said if done.exit_status == 0 else f"{said}\n(exit status {done.exit_status})\n"


def shortened(text: str, most: int = MOST) -> str:
    """`text` without its middle, which is counted, where it is longer than `most` characters."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n(… {len(text) - 2 * half} characters left out …)\n{text[-half:]}"
