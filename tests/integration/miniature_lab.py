"""A lab in miniature: two hosts that are reached over real sshds, TRex on one, the DUT on the other, and two links.

Run as root in namespaces of its own, so that all of it ends with this process: the network namespace of this process
is that of TRex' host, the DUT's host has another one. veth pairs are the links. TREX_HOME names the folder of TRex.

    unshare --net --mount --pid --fork --kill-child --mount-proc python -m integration.miniature_lab FOLDER COMMAND...

writes FOLDER/lab.yaml, runs COMMAND with each LAB in it replaced by that path, and ends with its status."""

import os
import subprocess
import sys
from pathlib import Path

from integration.sshd import Sshd

#: TRex' end and MAC address, and the DUT's end.
LINKS = (("tg0", "02:00:00:00:00:01", "client"), ("tg1", "02:00:00:00:00:02", "server"))
#: CPUs of TRex and of the DUT: a veth pair has no interrupts, so the DUT's work is steered to its CPU.
TREX_CPU, DUT_CPU = 0, 1

TESTBED = """
name: miniature
description: TRex and a Linux router on two hosts that are reached over SSH.
hosts:
  dut: {dut}
  tgen: {tgen}
duts:
  - type: linux-router
    host: dut
    ports: {{kind: interfaces, client: client, server: server}}
generator:
  type: trex
  host: tgen
  server: start
  trex_home: "{trex_home}"
  client: {{interface: tg0, mac: "02:00:00:00:00:01"}}
  server_port: {{interface: tg1, mac: "02:00:00:00:00:02"}}
  cpus: [{trex_cpu}]
  software: true
  low_end: true
  max_cps: 80000
  max_pps: 800000
cpus:
  generator: auto
  pmd: [{dut_cpu}]
  housekeeping: auto
oversubscribe: false
"""


def run(*argv: str, within: int = 0) -> None:
    """Run a command, or have it run in the namespaces of a process."""
    prefix = ["nsenter", "--target", str(within), "--net", "--mount", "--"] if within else []
    subprocess.run([*prefix, *argv], check=True, stdout=subprocess.DEVNULL)


def join(dut: Sshd) -> None:
    """The two links."""
    # /sys/class/net shows the network namespace in which it was mounted.
    run("mount", "-t", "sysfs", "sysfs", "/sys", within=dut.pid)
    run("ip", "link", "set", "lo", "up", within=dut.pid)
    for here, mac, there in LINKS:
        run("ip", "link", "add", here, "address", mac, "type", "veth", "peer", "name", there, "netns", str(dut.pid))
        run("ip", "link", "set", here, "up")
        run("ip", "link", "set", there, "up", within=dut.pid)
        for interface, within in ((here, 0), (there, dut.pid)):  # TRex reads frames before a card would have done it
            run("ethtool", "-K", interface, "tx", "off", within=within)
        steer = f"echo {1 << DUT_CPU:x} >/sys/class/net/{there}/queues/rx-0/rps_cpus"
        run("sh", "-c", steer, within=dut.pid)


def as_yaml(host: Sshd) -> str:
    """An entry of `hosts`."""
    config = host.config()
    login = f"address: 127.0.0.1, port: {config.port}, user: {config.user}, key: {config.key}"
    return f"{{{login}, known_hosts: {config.known_hosts}}}"


def lab_file(dut: str, tgen: str) -> str:
    """The testbed file, with these entries of `hosts`."""
    home = os.environ.get("TREX_HOME", "/opt/trex")
    return TESTBED.format(dut=dut, tgen=tgen, trex_home=home, trex_cpu=TREX_CPU, dut_cpu=DUT_CPU)


def main(folder: Path, command: list[str]) -> int:
    """Make the lab, run the command."""
    run("mount", "-t", "sysfs", "sysfs", "/sys")
    run("ip", "link", "set", "lo", "up")
    for name in ("tgen", "dut"):
        (folder / name).mkdir(parents=True)
    with Sshd(folder / "tgen") as tgen, Sshd(folder / "dut", more_namespaces=["--net"]) as dut:
        join(dut)
        (folder / "lab.yaml").write_text(lab_file(as_yaml(dut), as_yaml(tgen)))
        words = [word.replace("LAB", str(folder / "lab.yaml")) for word in command]
        return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
