"""A password that was typed into `password_env`, where the name of a variable belongs, is shown nowhere."""

from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.base.paths import ROOT
from ctbench.base.yaml_files import load
from ctbench.compare import setups
from ctbench.hosts.config import SshConfig
from ctbench.hosts.ssh_login import password_of
from ctbench.testbed.config import TestbedConfig

LAB = (ROOT / "variables" / "testbeds" / "example-trex-xeon.yaml").read_text()
#: As YAML, and the parts of it that must not be seen.
TYPED = ["hunter2", "Hunter_2", "HUNTER2", '"hunter2!"', '"two words"', "hünter", "4711", "[hunter2]", "{hunter2: x}"]
TYPED += ["*hunter2", "!hunter2 x", "@hunter2", "hunter2: x", "'hunter2"]
SECRETS = ("hunter2", "Hunter_2", "HUNTER2", "two words", "hünter", "4711")


def lab(tmp_path: Path, typed: str) -> Path:
    file = tmp_path / "lab.yaml"
    first_user = next(line for line in LAB.splitlines() if line.strip().startswith("user:"))
    indent = first_user[: len(first_user) - len(first_user.lstrip())]
    file.write_text(LAB.replace(first_user, f"{first_user}\n{indent}password_env: {typed}", 1), encoding="utf-8")
    return file


@pytest.mark.parametrize("typed", TYPED)
def test_neither_a_mistake_in_the_file_nor_a_variable_that_is_not_set_shows_it(typed: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        testbed = load("testbeds", lab(tmp_path, typed), TestbedConfig)
        for name, host in testbed.hosts.items():
            password_of(name, host)

    assert not [secret for secret in SECRETS if secret in str(caught.value)]


def test_neither_a_record_nor_a_comparison_has_it(tmp_path: Path) -> None:
    for typed in ("hunter2", "HUNTER2", "MY_SECRET", "CTBENCH_DUT_PASSWORD"):
        testbed = load("testbeds", lab(tmp_path, typed), TestbedConfig)
        assert typed not in str(testbed.model_dump(mode="json")) + testbed.model_dump_json()

        with pytest.raises(ConfigError, match="is not set"):
            setups._as_written(testbed)


def test_it_comes_from_the_variable_named_where_it_can_be_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
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
