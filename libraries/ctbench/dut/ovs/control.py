"""The command-line tools of an OVS instance, each with the paths of the instance's own files."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ctbench.base.errors import UnknownAnswer
from ctbench.base.text import one_line
from ctbench.dut.ovs import answers
from ctbench.dut.ovs.answers import Answer, Command
from ctbench.dut.ovs.settings import OvsInstallation
from ctbench.hosts.base import Host

#: The bridge with the two ports.
BRIDGE = "br0"
#: Seconds for a command. The first port makes DPDK touch all of its memory, which takes seconds without hugepages.
COMMAND_TIMEOUT_S = 60.0


class OvsControl:
    """A runner of ovs-vsctl, ovs-ofctl and ovs-appctl against one instance of the host."""

    def __init__(self, host: Host, installation: OvsInstallation, folder: str) -> None:
        """`folder`: the folder of the whole instance."""
        self.host = host
        self.installation = installation
        self.folder = folder
        self.bridge = BRIDGE
        #: Version of the running ovs-vswitchd, for what is said of it.
        self.release = ""
        #: Where an answer is kept that could not be read.
        self.kept_in: Path | None = None
        self._commands: frozenset[str] = frozenset()
        #: Keeps every OVS program in `folder` (the manuals' ENVIRONMENT and FILES sections), and DPDK's runtime
        #: files as well (RUNTIME_DIRECTORY, eal_filesystem.c).
        self.environment = dict.fromkeys(
            ("OVS_RUNDIR", "OVS_DBDIR", "OVS_LOGDIR", "OVS_SYSCONFDIR", "RUNTIME_DIRECTORY"), folder
        )

    @property
    def database_socket(self) -> str:
        return f"{self.folder}/db.sock"

    @property
    def vswitchd(self) -> str:
        """The name of ovs-vswitchd for ovs-appctl(8): its socket."""
        return f"{self.folder}/ovs-vswitchd.ctl"

    def ask(self, command: Command[Answer], *more: str) -> Answer:
        """Return the answer to a command with `more` words. Raise `UnknownAnswer` where it has an unknown form."""
        run = {"ovs-appctl": self.appctl, "ovs-ofctl": self.ofctl, "ovs-vsctl": self.vsctl}[command.tool]
        return self.read(command, run(*command.words, *more), *more)

    def read(self, command: Command[Answer], said: str, *more: str) -> Answer:
        """Read an answer as `ask` does."""
        try:
            return command.read(said)
        except answers.Unread as error:
            raise self._unknown(" ".join((str(command), *more)), said, str(error)) from None

    def _unknown(self, asked: str, said: str, line: str) -> UnknownAnswer:
        kept = ""
        if self.kept_in:
            file = self.kept_in / f"unknown-answer-{re.sub(r'[^a-z0-9]+', '-', asked)}.txt"
            with suppress(OSError):
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"$ {asked}\n{said}")
                kept = f" The whole answer is in {file}."
        return UnknownAnswer(
            f"`{asked}` of Open vSwitch {self.release or 'of an unknown version'} answered in a form that is not known"
            f" here: {one_line(line)[:200]}.{kept}"
        )

    def offers(self, command: Command[Any]) -> bool:
        """Return whether this ovs-vswitchd knows a command of ovs-appctl. Its commands are asked for once."""
        self._commands = self._commands or self.ask(answers.COMMANDS)
        return command.words[0] in self._commands

    def vsctl(self, *arguments: str) -> str:
        """Run ovs-vsctl(8), which returns once ovs-vswitchd has taken the change over, unless `--no-wait` is given."""
        return self._run("ovs-vsctl", f"--db=unix:{self.database_socket}", *arguments)

    def appctl(self, *arguments: str) -> str:
        return self._run("ovs-appctl", "-t", self.vswitchd, *arguments)

    def ofctl(self, *arguments: str) -> str:
        return self._run("ovs-ofctl", *arguments)

    def devices(self, interfaces: Sequence[str]) -> dict[str, dict[str, int]]:
        """Return the configuration of the devices, for those of these interfaces that are ports."""
        text = self.appctl(*answers.DEVICES.words)
        shown = self.read(answers.DEVICES, text)
        there = [interface for interface in interfaces if interface in shown]
        status = {name: row["status"] for name, row in self.rows("Interface", there, "status").items()} if there else {}
        try:
            return {name: answers.device_setup(name, shown[name], status[name]) for name in there}
        except answers.Unread as error:
            raise self._unknown(str(answers.DEVICES), text, str(error)) from None

    def other_config(self) -> dict[str, str]:
        """Return the options of the Open_vSwitch table."""
        return dict(self.column("Open_vSwitch", ".", "other_config"))

    def column(self, table: str, record: str, name: str) -> Any:
        return self.rows(table, [record], name)[record][name]

    def rows(self, table: str, records: Sequence[str], *names: str) -> dict[str, dict[str, Any]]:
        """Return columns of these database records, in their order: sets as lists, maps as dicts, RFC 7047 section
        5.1."""
        text = self.vsctl("--format=json", f"--columns={','.join(names)}", "list", table, *records)
        found = json.loads(text)
        return {
            record: {heading: _plain(value) for heading, value in zip(found["headings"], row, strict=True)}
            for record, row in zip(records, found["data"], strict=True)
        }

    def _run(self, tool: str, *arguments: str) -> str:
        argv = [self.installation.tool(tool), *arguments]
        return self.host.run(argv, COMMAND_TIMEOUT_S, env=self.environment).stdout


def _plain(value: Any) -> Any:
    match value:
        case ["map", pairs]:
            return {key: _plain(item) for key, item in pairs}
        case ["set", items]:
            return [_plain(item) for item in items]
        case _:
            return value


#: Severity and text of a log line; ovs-appctl(8), section Logging Commands: time|number|module|severity|message.
LOG_LINE = re.compile(r"^[^|]+\|\d+\|(?P<module>[^|]+)\|(?P<severity>EMER|ERR|WARN|INFO|DBG)\|(?P<message>.*)$")


def running_facts(control: OvsControl) -> dict[str, Any]:
    """Return the settings, the receive queues of each PMD thread, and its statistics."""
    queues = control.ask(answers.QUEUES)
    return {
        "other_config": control.other_config(),
        "rxq_map": {str(cpu): [f"{port}/{queue}" for port, queue in polled] for cpu, polled in queues.items()},
        "pmd": {str(cpu): asdict(pmd) for cpu, pmd in control.ask(answers.PMDS).items()},
    }
