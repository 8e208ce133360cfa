"""The TRex client is found in the order that the documentation gives, and is not imported to be asked its version."""

import errno
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError, MissingResource, TestbedError
from ctbench.hosts.local import LocalHost
from ctbench.traffic.trex import locate
from ctbench.traffic.trex.locate import CLIENT, EXTERNAL, MARK, TrexClient, check_python, find_client


class OtherMachine(LocalHost):
    """This machine, behaving as if it were across the network."""

    @property
    def name(self) -> str:
        return "trex.lab"

    def local_path(self, remote: str) -> None:
        return None

    def _content(self, remote: str) -> bytes:
        return Path(remote).read_bytes()


def make_home(parent: Path, version: str) -> Path:
    """Folders as TRex has them; importing the package would fail."""
    home = parent / "scripts"
    (home / CLIENT / MARK).parent.mkdir(parents=True)
    (home / CLIENT / MARK).touch()
    (home / CLIENT / "trex/__init__.py").write_text("raise ImportError('must not be imported')\n")
    (home / EXTERNAL).mkdir()
    (home / EXTERNAL / "some.py").touch()
    (parent / "VERSION").write_text(f"{version}\n\n\n")
    return home


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return make_home(tmp_path / "tree", "v3.08")


@pytest.mark.parametrize(
    ("host", "expected"),
    [(LocalHost(), ("tree", "trex_home", "v3.08")), (OtherMachine(), ("other", "TREX_HOME", "v3.06"))],
)
def test_the_testbed_file_comes_first_where_it_speaks_of_this_machine(
    home: Path, tmp_path: Path, host: LocalHost, expected: tuple[str, str, str]
) -> None:
    other = make_home(tmp_path / "other", "v3.06")

    client = find_client(str(home), host, environment={"TREX_HOME": str(other)})

    tree, *found = expected
    assert (client.folder, client.origin, client.version) == (tmp_path / tree / "scripts" / CLIENT, *found)


def test_an_installed_client_is_found_and_not_imported(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(home / CLIENT))

    client = find_client(environment={})

    assert (client.folder, client.origin) == (home / CLIENT, "installed")
    assert "trex" not in sys.modules


def test_where_there_is_none_the_four_places_are_named_and_another_package_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trex").mkdir()
    (tmp_path / "trex/__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(MissingResource, match=r"trex_home .* TREX_HOME, .* packages \(trex\), .* the generator's host"):
        find_client("", LocalHost(), environment={})


def test_a_folder_that_may_not_be_read_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refused)  # root may read everything

    with pytest.raises(ConfigError, match=rf"^TREX_HOME: {tmp_path}\S+ may not be read \(Permission denied\)"):
        find_client(environment={"TREX_HOME": str(tmp_path)})


@pytest.mark.parametrize("name", ["trex_home", "TREX_HOME"])
def test_a_named_folder_without_a_client_is_an_error(tmp_path: Path, name: str) -> None:
    home, environment = (str(tmp_path), {}) if name == "trex_home" else ("", {name: str(tmp_path)})
    with pytest.raises(ConfigError, match=f"{name}: {tmp_path} holds no TRex client"):
        find_client(home, LocalHost(), environment=environment)


def test_it_is_copied_from_the_generators_host_once_for_each_version(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    host = OtherMachine()

    client = find_client(str(home), host, environment=cache)
    (home / CLIENT / MARK).unlink()
    again = find_client(str(home), host, environment=cache)

    assert client.folder == tmp_path / "cache/ctbench/trex/v3.08" / CLIENT
    assert (client.origin, client.version) == ("copied from trex.lab", "v3.08")
    assert (client.folder.parents[2] / EXTERNAL / "some.py").exists()
    assert again == client
    assert [path.name for path in (tmp_path / "cache/ctbench/trex").iterdir()] == ["v3.08"]


def test_a_copy_that_breaks_off_is_not_taken_for_the_client(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks_off(remote: str, local: Path) -> None:
        local.write_bytes(Path(remote).read_bytes()[:100])

    host = OtherMachine()
    monkeypatch.setattr(host, "get", breaks_off)

    with pytest.raises(TestbedError, match=r"client\.tar\.gz` failed"):
        find_client(str(home), host, environment={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert list((tmp_path / "cache/ctbench/trex").iterdir()) == []


def test_a_cache_that_cannot_be_written_and_a_folder_of_no_version_are_said(home: Path, tmp_path: Path) -> None:
    with pytest.raises(TestbedError, match=r"cannot be kept in /proc/ctbench/trex: .* set XDG_CACHE_HOME"):
        find_client(str(home), OtherMachine(), environment={"XDG_CACHE_HOME": "/proc"})
    with pytest.raises(MissingResource, match=f"trex.lab: cannot tell which version of TRex {tmp_path} holds"):
        find_client(str(tmp_path), OtherMachine(), environment={"XDG_CACHE_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("python", "has_cgi", "client", "said"),
    [
        ((3, 11), True, "v3.06", ""),
        ((3, 12), True, "v3.08", ""),
        ((3, 12), True, "v3.06", "TRex client v3.06 does not work with Python 3.12: use Python 3.11 or older"),
        ((3, 13), False, "v3.08", "Python 3.13 has no module cgi, .*: `pip install legacy-cgi`"),
        ((3, 13), True, "v3.08", ""),
    ],
)
def test_a_python_that_cannot_run_the_client_is_named(
    monkeypatch: pytest.MonkeyPatch, python: tuple[int, int], has_cgi: bool, client: str, said: str
) -> None:
    monkeypatch.setattr(locate.sys, "version_info", (*python, 0))
    monkeypatch.setattr(locate.importlib.util, "find_spec", lambda name: object() if has_cgi else None)

    with pytest.raises(MissingResource, match=said) if said else nullcontext():
        check_python(TrexClient(Path("/opt/trex"), "TREX_HOME", client))
