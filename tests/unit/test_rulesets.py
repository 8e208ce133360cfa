"""The catalogue of rulesets, what a user's own file needs, what is said of a wrong name; the one name of a topology."""

import shutil
from pathlib import Path

import pytest

from ctbench.base.errors import ConfigError
from ctbench.base.paths import RULESETS
from ctbench.dut.registry import ruleset_of, ruleset_title
from ctbench.dut.rulesets import add_ruleset, catalogue, find_ruleset
from ctbench.dut.topology import Topology


def test_every_file_that_ships_is_in_the_catalogue_with_a_title_for_people() -> None:
    shipped = {(entry.family, path.name) for entry in catalogue().values() if (path := entry.rules)}
    assert shipped == {(path.parent.name, path.name) for path in RULESETS.glob("*/*") if path.suffix != ".yaml"}
    assert ruleset_title("nat") == "Connection tracking and SNAT"
    assert ruleset_title("of-another-version") == "of-another-version"


def test_a_ruleset_of_ones_own_is_a_file_and_an_entry_which_may_name_another_one(tmp_path: Path) -> None:
    (tmp_path / "nftables").mkdir()
    (tmp_path / "nftables" / "mine.nft").write_text("table ip ctbench {}")
    (tmp_path / "nftables" / "mine.yaml").write_text("title: My rules\ntracks: true\ntranslates: source\ntags: [mine]")
    found = find_ruleset(["linux", "nftables"], "nftables-mine", "a router", tmp_path)
    assert (found.title, found.tracks, found.translates, found.tags) == ("My rules", True, "source", ["mine"])
    shutil.copytree(RULESETS, tmp_path / "rulesets")
    emulated = tmp_path / "rulesets" / "emulated"
    (emulated / "mine.sh").touch()
    (emulated / "mine.yaml").write_text("ruleset: iptables/snat\ntitle: Mine")
    found = catalogue(tmp_path / "rulesets")["emulated", "mine"]
    assert (found.title, found.tracks, found.translates) == ("Mine", True, "source")
    assert found.tags == ["nat", "conntrack", "snat", "iptables"]


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("nat.yaml", "ruleset: ../ovs/nat", r"nat\.yaml: .*ruleset"),
        ("nat.yaml", "ruleset: ovs/nosuch", r"nat\.yaml: .*ruleset"),
        ("nat.yaml", "title: Mine", r"nat\.yaml: .*tracks"),
        ("nat.yaml", "", r"nat\.yaml: .*empty"),
        ("nat.yaml", None, r"nat\.flows: is not in the catalogue\.\n  Expected nat\.yaml next to it"),
        ("nat.flows", None, r"nat\.yaml: describes a ruleset that is not there\.\n  Expected nat\.flows"),
    ],
)
def test_an_entry_that_lacks_something_is_refused(tmp_path: Path, file: str, text: str | None, said: str) -> None:
    shutil.copytree(RULESETS, tmp_path / "rulesets")
    changed = tmp_path / "rulesets" / "ovs" / file
    changed.unlink() if text is None else changed.write_text(text)
    with pytest.raises(ConfigError, match=said):
        catalogue(tmp_path / "rulesets")


def test_a_file_of_rules_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ovs").mkdir()
    (tmp_path / "ovs" / "mine.flows").write_bytes(b"# r\xe8gles\nactions=drop\n")
    (tmp_path / "ovs" / "mine.yaml").write_text("title: Mine\ntracks: false")
    with pytest.raises(ConfigError, match=r"mine\.flows cannot be read \(it is not UTF-8\)"):
        find_ruleset(["ovs"], "mine", "Open vSwitch", tmp_path).text  # noqa: B018


def test_a_file_of_rules_from_windows_is_taken(tmp_path: Path) -> None:
    (tmp_path / "windows.flows").write_bytes(b"\xef\xbb\xbftable=0 actions=drop\r\n")
    (tmp_path / "windows.yaml").write_bytes(b"\xef\xbb\xbftitle: Mine\r\ntracks: false\r\n")
    assert add_ruleset(tmp_path / "windows.flows").text == "table=0 actions=drop\n"


@pytest.mark.parametrize("name", ["", "stateful", "nftables-notrack", "iptables-../../secret", "nat"])
def test_another_name_is_refused_with_those_that_there_are(name: str) -> None:
    known = r"is not a ruleset of a router\.\n  Expected one of: forward, forward-ipv6, iptables-"
    with pytest.raises(ConfigError, match=known):
        find_ruleset(["linux", "iptables", "nftables"], name, "a router")
    with pytest.raises(ConfigError, match=r'Did you mean "conntrack"\?'):
        ruleset_of(Topology(ruleset="contrack"))


def test_a_key_names_what_is_not_the_default() -> None:
    assert Topology(ruleset="nat", cpus=8, rx_queues=4).key == "ovs-dpdk/nat/8cpu-4rxq"
    assert Topology(ruleset="normal", ports="bond", mtu=9000).key == "ovs-dpdk/normal/1cpu-1rxq/ports=bond/mtu=9000"
    assert Topology(emc_insert_inv_prob=0, idle_ports=2).key.endswith("1rxq/emc_insert_inv_prob=0/idle_ports=2")


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("", '"" is not a topology.\n  Expected DATAPATH/RULESET/CPUS-QUEUES'),
        ("ovs-dpdk/conntrack", "is not a topology"),
        ("ovs-dpdk/conntrack/0cpu-1rxq", "cpus is 0.\n  Expected greater than or equal to 1"),
        ("ovs-dpdk/conntrack/1cpu-65rxq", "rx_queues is 65.\n  Expected less than or equal to 64"),
        ("ovs-dpdk/conntrack/1cpu-1rxq/mut=9000", '"mut" is not an option of a topology.\n  Expected ports, mtu, '),
        ("ovs-dpdk/conntrack/1cpu-1rxq/mtu=big", 'mtu is "big"'),
        ("ovs-dpdk/conntrack/1cpu-1rxq/mtu=1500", 'Expected "ovs-dpdk/conntrack/1cpu-1rxq".'),
        ("ovs-dpdk/normal/1cpu-1rxq/mtu=9000/ports=bond", 'Expected "ovs-dpdk/normal/1cpu-1rxq/ports=bond/mtu=9000".'),
        ("ovs-dpdk/conntrack/01cpu-1rxq", 'Expected "ovs-dpdk/conntrack/1cpu-1rxq".'),
    ],
)
def test_a_key_that_names_none_says_what_is_expected(key: str, expected: str) -> None:
    with pytest.raises(ValueError) as refusal:
        Topology.parse(key)
    assert expected in str(refusal.value)


def test_a_ruleset_may_lie_elsewhere_and_has_a_name_then(tmp_path: Path) -> None:
    rules = tmp_path / "back-office.rules"
    rules.write_text("*filter\nCOMMIT\n")
    (tmp_path / "back-office.yaml").write_text("title: Ours\ntracks: true\nip_version: 6\n")
    found = add_ruleset(rules)
    assert (found.name, found.family, found.rules) == ("ip6tables-back-office", "ip6tables", rules)
    assert ruleset_of(Topology(datapath="linux-router", ruleset="ip6tables-back-office")) == found
    assert add_ruleset(rules) == found


@pytest.mark.parametrize(
    ("file", "like", "title", "translates"),
    [
        ("like-ovs.flows", "ovs/nat", "nat", "source"),
        ("like-nft.nft", "nftables/snat", "nftables-snat", "source"),
        ("six.rules", "ip6tables/stateful", "ip6tables-stateful", "nothing"),
    ],
)
def test_a_ruleset_elsewhere_may_name_one_that_ships(
    tmp_path: Path, file: str, like: str, title: str, translates: str
) -> None:
    """And is of its version of IP."""
    (tmp_path / file).touch()
    (tmp_path / file).with_suffix(".yaml").write_text(f"ruleset: {like}")
    found, shipped = add_ruleset(tmp_path / file), ruleset_title(title)
    assert (found.title, found.tracks, found.translates) == (shipped, True, translates)
    assert found.family == like.partition("/")[0]


@pytest.mark.parametrize(
    ("name", "entry", "said"),
    [
        ("mine.rules", None, "no entry is next to it"),
        ("mine.rules", "title: Ours", "tracks"),
        ("mine.txt", "title: Ours\ntracks: true", "does not end as rules do"),
        ("Our Rules.nft", "title: Ours\ntracks: true", "is not a name"),
        ("snat.nft", "title: Ours\ntracks: true", "is the name of"),
        ("mine.nft", "title: Ours\ntracks: true\nzone_limits: {10: 5}", "nftables has no limits of zones"),
        ("mine.flows", "title: Ours\ntracks: true\nzone_limits: {10: 0}", r"zone_limits\.10: 0 does not fit"),
    ],
)
def test_what_is_no_ruleset_elsewhere_is_refused(tmp_path: Path, name: str, entry: str | None, said: str) -> None:
    rules = tmp_path / name
    rules.touch()
    if entry:
        rules.with_suffix(".yaml").write_text(entry)
    with pytest.raises(ConfigError, match=said):
        add_ruleset(rules)
    with pytest.raises(ConfigError, match="is not a file"):
        add_ruleset(tmp_path / "nowhere.nft")
