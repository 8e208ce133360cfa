"""A password that was typed into `password_env`, where the name of a variable belongs, is shown nowhere."""

from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load
from ctbench.compare.setups import write_testbed
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_login import password_of
from ctbench.testbed.config import TestbedConfig

pytestmark = pytest.mark.unit

LAB = (ROOT / "variables" / "testbeds" / "example-trex-xeon.yaml").read_text()
#: As YAML, and the part of it that nobody may see.
TYPED = [
    ("hunter2", "hunter2"),
    ("Hunter_2", "Hunter_2"),
    ("HUNTER2", "HUNTER2"),
    ('"hunter2!"', "hunter2"),
    ('"two words"', "two words"),
    ("hünter", "hünter"),
    ("4711", "4711"),
    ("[hunter2]", "hunter2"),
    ("{hunter2: x}", "hunter2"),
    ("*hunter2", "hunter2"),
    ("!hunter2 x", "hunter2"),
    ("@hunter2", "hunter2"),
    ("hunter2: x", "hunter2"),
    ("'hunter2", "hunter2"),
]


def lab(tmp_path: Path, typed: str) -> Path:
    file = tmp_path / "lab.yaml"
    first_user = next(line for line in LAB.splitlines() if line.strip().startswith("user:"))
    indent = first_user[: len(first_user) - len(first_user.lstrip())]
    file.write_text(LAB.replace(first_user, f"{first_user}\n{indent}password_env: {typed}", 1), encoding="utf-8")
    return file


@pytest.mark.parametrize(("typed", "secret"), TYPED)
def test_neither_a_mistake_in_the_file_nor_a_variable_that_is_not_set_shows_it(
    typed: str, secret: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        testbed = load("testbeds", lab(tmp_path, typed), TestbedConfig)
        for name, host in testbed.hosts.items():
            password_of(name, host)

    assert secret not in str(caught.value)


@pytest.mark.parametrize("typed", ["hunter2", "HUNTER2", "MY_SECRET", "CTBENCH_DUT_PASSWORD"])
def test_a_record_has_the_testbed_without_it(typed: str, tmp_path: Path) -> None:
    testbed = load("testbeds", lab(tmp_path, typed), TestbedConfig)

    assert typed not in str(testbed.model_dump(mode="json")) + testbed.model_dump_json()


def test_a_comparison_does_not_copy_it_into_its_results(tmp_path: Path) -> None:
    file = lab(tmp_path, "hunter2")
    testbed = load("testbeds", file, TestbedConfig)

    with pytest.raises(ConfigError, match="is not set"):
        write_testbed(testbed, "/opt/ovs", tmp_path / "base.yaml")
    assert not (tmp_path / "base.yaml").exists()


def test_it_comes_from_the_variable_which_is_named_where_it_can_be_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = SshConfig(address="dut", user="root", password_env="DUT_PASSWORD")
    for wrong, said in (("", "DUT_PASSWORD is not set"), ("hunter2\nhunter3", "more than one line")):
        monkeypatch.setenv("DUT_PASSWORD", wrong)
        with pytest.raises(ConfigError, match=said) as caught:
            password_of("dut", config)
        assert "hunter" not in str(caught.value)

    monkeypatch.setenv("DUT_PASSWORD", "hunter2")
    found = password_of("dut", config)
    assert found is not None and found.get_secret_value() == "hunter2"
    assert "hunter2" not in f"{found} {found!r} {[found]}"
    assert password_of("dut", SshConfig(address="dut", user="root")) is None
