"""Commands that fix what the doctor finds, in the manner of the host's distribution."""

from collections.abc import Iterable, Sequence

from ctbench.hosts.examination.facts import Facts

#: Words in /etc/os-release's PRETTY_NAME of distributions without grubby.
DEBIAN = ("Debian", "Ubuntu")


def kernel_arguments(facts: Facts, arguments: str) -> str:
    """The command that adds arguments to the kernel's command line."""
    if any(name in facts.machine.distribution for name in DEBIAN):
        return f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{arguments} /' /etc/default/grub && update-grub && reboot"
    return f'grubby --update-kernel=ALL --args="{arguments}" && reboot'


def install(facts: Facts, packages: Iterable[str]) -> str:
    """The command that installs packages, which are called the same nearly everywhere."""
    tool = "apt-get install" if any(name in facts.machine.distribution for name in DEBIAN) else "dnf install"
    return f"{tool} {' '.join(sorted(set(packages)))}"


def cpu_ranges(cpus: Sequence[int]) -> str:
    """CPUs as the kernel writes them: `1-11,13`."""
    parts: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1][1:] = [cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)
