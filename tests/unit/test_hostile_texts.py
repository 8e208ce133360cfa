"""Whatever a text, on the command line or in a file: a value in its range, or a sentence."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from ctbench.base.errors import ConfigError
from ctbench.base.network import Address, Mac, PathHere
from ctbench.base.units import parse_duration, parse_number, parse_ratio, parse_share, parse_whole
from ctbench.compare.setups import installations
from ctbench.compare.sides import read_runs
from ctbench.report.reference import read_references
from ctbench.results.published import is_published
from ctbench.sla.reference import read_reference
from ctbench.testbed.pool import split_names

DIGITS = st.one_of(
    st.integers(0, 10**400).map(str), st.floats().map(str), st.just("0" * 5000), st.just("9" * 5000),
    st.from_regex(r"[0-9]{1,5}(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,4})?", fullmatch=True),
)  # fmt: skip
SUFFIX = st.sampled_from(["", "k", "M", "G", "%", " %", "s", "ms", "us", "µs", "ns", "min", "h", "K", "%%", "\n"])
TEXTS = st.one_of(st.text(max_size=30), st.builds("{}{}".format, DIGITS, SUFFIX))
VALUES = st.one_of(
    TEXTS, st.none(), st.booleans(), st.floats(), st.integers(), st.just(10**5000), st.just(-(10**5000)),
    st.lists(st.integers()), st.dictionaries(st.text(), st.integers()), st.binary(), st.dates(),
)  # fmt: skip
PARSERS: list[tuple[Callable[[object], float], float]] = [
    (parse_number, math.inf), (parse_ratio, 1), (parse_share, math.inf), (parse_duration, math.inf),
]  # fmt: skip


def said_well(error: Exception) -> None:
    first, expected = str(error).split("\n")
    assert len(first) < 200 and first.isprintable()
    assert expected.startswith("  Expected ") and len(expected) < 200


@pytest.mark.parametrize(("parser", "most"), PARSERS)
@given(value=VALUES)
@settings(derandomize=True, deadline=None)
def test_a_text_is_a_quantity_or_a_sentence(parser: Callable[[object], float], most: float, value: object) -> None:
    try:
        found = parser(value)
    except ValueError as error:
        said_well(error)
    else:
        assert 0 <= found <= most and math.isfinite(found) and math.copysign(1, found) == 1


@pytest.mark.parametrize("text", ["1e-999", "1e-400", "0." + "0" * 330 + "1"])
def test_what_is_too_small_for_a_number_is_not_taken_for_none(text: str) -> None:
    for parser, unit in ((parse_number, ""), (parse_ratio, "%"), (parse_share, "%"), (parse_duration, "s")):
        with pytest.raises(ValueError, match=r"is too small for a \w+\.\n  Expected"):
            parser(text + unit)


@pytest.mark.parametrize("kind", [Address, Mac, PathHere])
@given(text=st.one_of(st.text(max_size=400), st.text("0123456789abcdef:.%-_~/ ", max_size=40)))
@settings(derandomize=True, deadline=None)
def test_a_text_names_a_thing_of_the_network_or_is_a_sentence(kind: Any, text: str) -> None:
    try:
        assert TypeAdapter(kind).validate_python(text) == text
    except ValidationError as error:
        said_well(error.errors()[0]["ctx"]["error"])
    else:
        assert text.isprintable() and not (text.startswith("-") and kind is Address)


def test_a_host_has_a_name_or_an_address() -> None:
    taken = ["dut", "dut.lab.example", "192.0.2.1", "::1", "fe80::1%eth0", "dut_1.lab.", "a-b", "1and1.example"]
    assert [TypeAdapter(Address).validate_python(name) for name in taken] == taken
    refused = ["", " ", "-oProxyCommand=x", "a b", "a..b", ".", "-", "300.1.1.1", "1.2.3", "a" * 64, "a." * 127 + "aa",
               "é", "fe80::1%-x -y", "[::1]", "root@dut", "dut:22", "dut/x", "a\n", "${DUT}", "10"]  # fmt: skip
    for name in refused:
        with pytest.raises(ValidationError, match=r"\n  Expected"):
            TypeAdapter(Address).validate_python(name)


LONG = "x" * 5000


@pytest.mark.parametrize("name", [LONG, "a\0b", "/" + LONG, f"a/{LONG}/b", "\x1b[31m\0", "\ud800\0"])
@pytest.mark.parametrize(
    "read",
    [read_runs, read_reference, lambda name: read_references([Path(name)]), lambda name: is_published(Path(name))],
)
def test_a_folder_that_cannot_be_is_one_sentence(read: Callable[[str], object], name: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(name)
    said_well(error.value)


@pytest.mark.parametrize(
    ("read", "texts"),
    [
        (split_names, ["", ",", "a", LONG, "a," * 5000, "\x1b,", "\n,\0"]),
        (
            lambda text: installations([text, "candidate=distribution"]),
            ["", "base", LONG, f"base={LONG}", "base=\x1b", "=/opt", "base=opt\n"],
        ),
    ],
)
def test_an_option_that_is_none_is_one_sentence(read: Callable[[str], object], texts: list[str]) -> None:
    for text in texts:
        with pytest.raises(ConfigError) as error:
            read(text)
        said_well(error.value)


@pytest.mark.parametrize("text", ["", "0", "1001", "-1", "1.5", "1e3", "9" * 5000, "0x1", "٣", "1_0", "a", 4, None])
def test_a_whole_number_out_of_its_range_is_one_sentence(text: object) -> None:
    with pytest.raises(ValueError, match="Expected a whole number from 1 to 1000") as error:
        parse_whole(text, 1, 1000)
    said_well(error.value)
    assert [parse_whole(each, 1, 1000) for each in ("1", "1000", " 4 ", "007")] == [1, 1000, 4, 7]
