"""Preflight says in one sentence what a machine lacks, and what to do about it."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ctbench import preflight
from ctbench.errors import ConfigError, MissingResource

pytestmark = pytest.mark.unit


def sentence_of(check: Callable[[], None], error: type[Exception] = MissingResource) -> str:
    with pytest.raises(error) as caught:
        check()
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A machine whose unshare is refused; the test fills in its kernel settings."""
    settings: dict[str, str] = {}

    def unshare(argv: tuple[str, ...], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(argv, 1, "", "unshare: unshare failed: Operation not permitted\n")

    monkeypatch.setattr(preflight.subprocess, "run", unshare)
    monkeypatch.setattr(preflight, "_sysctl", lambda name: settings.get(name, ""))
    monkeypatch.setattr(preflight, "in_container", lambda: False)
    return settings


def test_another_processor_is_refused() -> None:
    assert "aarch64" in sentence_of(lambda: preflight.check_cpu("aarch64"))


def test_x86_64_is_accepted() -> None:
    preflight.check_cpu("x86_64")


def test_missing_ovs_names_the_package(tmp_path: Path) -> None:
    text = sentence_of(lambda: preflight.check_ovs(tmp_path / "ovs-vswitchd-dpdk"))
    assert "./run setup" in text
    assert "openvswitch-switch-dpdk" in text


def test_missing_drivers_are_named(tmp_path: Path) -> None:
    text = sentence_of(lambda: preflight.check_drivers([f"{tmp_path}/pmds-*"]))
    assert "librte-net-memif*" in text
    assert "librte-mempool-ring*" in text


def test_only_the_driver_that_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "pmds-23.0").mkdir()
    (tmp_path / "pmds-23.0" / "librte_net_memif.so.23").touch()
    text = sentence_of(lambda: preflight.check_drivers([f"{tmp_path}/pmds-*"]))
    assert "mempool" in text
    assert "memif" not in text


def test_drivers_of_two_dpdks_do_not_add_up(tmp_path: Path) -> None:
    for folder, library in {"pmds-23.0": "librte_net_memif.so.23", "pmds-24.0": "librte_mempool_ring.so.24"}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / library).touch()
    sentence_of(lambda: preflight.check_drivers([f"{tmp_path}/pmds-*"]))


def test_both_drivers_are_enough(tmp_path: Path) -> None:
    (tmp_path / "pmds-23.0").mkdir()
    for library in preflight.PMD_LIBRARIES:
        (tmp_path / "pmds-23.0" / f"{library}.so.23").touch()
    preflight.check_drivers([f"{tmp_path}/pmds-*"])


@pytest.mark.parametrize(
    ("setting", "value", "remedy"),
    [
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces="),
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        ("kernel/other", "0", "ask the administrator"),
    ],
)
def test_refused_namespaces_are_explained(refused: dict[str, str], setting: str, value: str, remedy: str) -> None:
    refused[setting] = value
    text = sentence_of(preflight.check_namespaces)
    assert remedy in text
    assert "Operation not permitted" in text


def test_a_container_gets_its_own_remedy(refused: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "in_container", lambda: True)
    assert "--security-opt" in sentence_of(preflight.check_namespaces)


def test_missing_unshare_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "UNSHARE", ("no-such-command",))
    assert "util-linux" in sentence_of(preflight.check_namespaces)


def test_main_prints_the_sentence_and_returns_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(preflight.platform, "machine", lambda: "riscv64")
    assert preflight.main() == 6
    assert "riscv64" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "expected"),
    [(None, "there is no file"), ("a: [1\nb: 2", "is not YAML in line 2"), ("- a", "holds list"), ("", "NoneType")],
)
def test_a_named_file_that_is_no_yaml_is_refused(tmp_path: Path, content: str | None, expected: str) -> None:
    (tmp_path / "sla").mkdir()
    (tmp_path / "sla" / "local.yaml").write_text("a: 1")
    if content is not None:
        (tmp_path / "sla" / "mine.yaml").write_text(content)
    text = sentence_of(lambda: preflight.check_named_files(["SLA:mine"], tmp_path), ConfigError)
    assert expected in text
    assert "mine.yaml" in text


def test_a_name_that_does_not_exist_lists_those_that_do(tmp_path: Path) -> None:
    (tmp_path / "testbeds").mkdir()
    (tmp_path / "testbeds" / "local.yaml").write_text("a: 1")
    text = sentence_of(lambda: preflight.check_named_files(["test_bed:lab"], tmp_path), ConfigError)
    assert "There are: local." in text


def test_a_path_and_other_variables_pass(tmp_path: Path) -> None:
    path = tmp_path / "lab.yml"
    path.write_text("a: 1")
    preflight.check_named_files([f"TESTBED:{path}", "NAME:x", "CAMPAIGN:${DEFAULT}"], tmp_path)
