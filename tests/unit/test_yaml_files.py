"""A YAML file that is wrong, hostile or not a file ends in a sentence with file, key and expectation."""

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BeforeValidator, Field

from ctbench.base.errors import ConfigError
from ctbench.base.files import MOST_BYTES, MOST_VALUES, UnreadableFile, read_regular, read_yaml
from ctbench.base.quantities import Ratio
from ctbench.base.units import parse_duration, parse_number
from ctbench.base.yaml_files import Name, YamlModel, load, names
from ctbench.sla.floors import Floors

Number = Annotated[float, BeforeValidator(parse_number)]
Seconds = Annotated[float, BeforeValidator(parse_duration)]


class Wheel(YamlModel):
    size: int = Field(ge=1)
    spokes: Literal["wood", "steel"] = "steel"


class Sail(YamlModel):
    kind: Literal["sail"]
    area: Number


class Motor(YamlModel):
    kind: Literal["motor"]
    power: Number


class Vehicle(YamlModel):
    name: Name
    wheels: dict[str, Wheel] = Field(default_factory=dict)
    seats: list[Wheel] = Field(default_factory=list)
    speed: Number = 0
    slip: Ratio = 0
    wait: Seconds = 0
    electric: bool = False
    drive: Annotated[Sail | Motor, Field(discriminator="kind")] | None = None


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "variables/vehicles").mkdir(parents=True)
    return tmp_path


def write(root: Path, text: str, name: str = "cart") -> None:
    (root / f"variables/vehicles/{name}.yaml").write_text(text)


def mistake(root: Path, text: str) -> str:
    write(root, text)
    with pytest.raises(ConfigError) as error:
        load("vehicles", "cart", Vehicle, root=root)
    return str(error.value)


def test_a_name_is_found_in_variables_and_numbers_are_read_as_people_write_them(root: Path) -> None:
    write(root, "name: cart\nspeed: 48.2k\nslip: 0.02%\nwait: 1.5s\nwheels: {front: {size: 2}}\n")
    cart = load("vehicles", "cart", Vehicle, root=root)
    assert (cart.speed, cart.slip, cart.wait, cart.wheels["front"].size) == (48_200, 0.0002, 1.5, 2)
    assert cart.file == "variables/vehicles/cart.yaml"
    path = root / "variables/vehicles/cart.yaml"
    path.rename(path.with_name("mine.yaml"))
    assert load("vehicles", path.with_name("mine.yaml"), Vehicle).name == "cart"  # of a path it may be any name
    with pytest.raises(ConfigError, match=r"mine\.yaml: name: .*\n  Expected .mine"):
        load("vehicles", "mine", Vehicle, root=root)  # a copied file must not pass for the original


def test_an_unknown_file_is_answered_with_those_that_there_are(root: Path) -> None:
    write(root, "name: cart\n")
    write(root, "name: bus\n", "bus")
    with pytest.raises(ConfigError) as error:
        load("vehicles", "carts", Vehicle, root=root)
    assert str(error.value) == (
        'variables/vehicles/carts.yaml: no such file. Did you mean "cart"?\n  Expected a path, or one of the names in '
        "variables/vehicles: bus, cart."
    )
    assert names("vehicles", root=root) == ["bus", "cart"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: cart\n  speed: 5\n", "cart.yaml: line 2, column 8: mapping values are not allowed here."),
        ("name: [cart\n", "cart.yaml: line 2, column 1: while parsing a flow sequence, expected"),
        ("name: cart\n\tspeed: 5\n", "spaces, not tabs"),
        ("name: cart\nspeed: >= 5\n", "in quotes"),
        ("name: cart\nspeed: 1\nspeed: 2\n", 'line 3, column 1: duplicate key "speed".'),
        ("name: cart\nwheels: {a: {size: 1}, a: {size: 2}}\n", 'duplicate key "a".'),
        ("name: cart\nspeed: 2024-99-99\n", '"2024-99-99" is not a number'),
        ("name: \x01\n", "Expected a text file in UTF-8."),
    ],
)
def test_a_mistake_in_the_syntax_is_said_with_file_line_and_what(root: Path, text: str, said: str) -> None:
    message = mistake(root, text)
    assert message.startswith("variables/vehicles/cart.yaml: ")
    assert said in message
    assert "\n  Expected " in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cart.yaml: is empty.\n  Expected keys"),
        ("- a\n", "cart.yaml: holds a list"),
        ("name: cart\nsped: 5\n", "sped: unknown key.\n  Expected one of: drive, electric, name, seats, slip, speed, "
                                  'wait, wheels. Did you mean "speed"?'),
        ("name: cart\nwheels: {front: {size: 2, spoke: wood}}\n", "front.spoke: unknown key.\n  Expected one of: size"),
        ("name: cart\nseats: [{size: 1}, {size: 2, x: 1}]\n", "seats[1].x: unknown key.\n  Expected one of: size, "),
        ("name: cart\ndrive: {kind: sail, aera: 5}\n", "drive.aera: unknown key.\n  Expected one of: area, kind."),
        ("name: cart\ndrive: {kind: sale, area: 5}\n", 'drive.kind: "sale" does not fit.\n  Expected '
                                                        "'sail', 'motor'. Did you mean"),
        ("name: cart\ndrive: {area: 5}\n", "drive.kind: is missing."),
        ("name: cart\ndrive: {kind: sail, area: 5q}\n", 'drive.area: "5q" is not a number.'),
        ("speed: 5\n", "cart.yaml: name: is missing."),
        ("name: cart\nwheels: {front: {}}\n", "wheels.front.size: is missing."),
        ("name: cart\nwheels: {front: {size: 0}}\n", "size: 0 does not fit.\n  Expected a number greater than"),
        ("name: cart\nwheels: {front: {size: two}}\n", 'size: "two" does not fit.\n  Expected a valid integer.'),
        ("name: cart\nwheels: {front: {size: yes}}\n", "size: true does not fit."),
        ("name: cart\nwheels: {front: }\n", "wheels.front: nothing does not fit.\n  Expected a valid dictionary."),
        ("name: cart\nwheels: {front: {size: 1, spokes: woood}}\n", 'spokes: "woood" does not fit.\n  Expected '),
        ("name: cart\nelectric: 1\n", "electric: 1 does not fit.\n  Expected a valid boolean."),
        ("name: Cart!\n", 'name: "Cart!" is not a name.'),
        ("name: cart\nslip: 0.02\n", "slip: 0.02 is not a percentage."),
        ("name: cart\nspeed: .nan\n", "speed: nan is not a number."),
        ("name: cart\n5: x\n", "cart.yaml: 5: "),
    ],
)  # fmt: skip
def test_a_mistake_in_the_content_is_said_with_file_key_and_expectation(root: Path, text: str, said: str) -> None:
    message = mistake(root, text)
    assert said in message
    assert message.startswith("variables/vehicles/cart.yaml: ")
    assert "pydantic" not in message


def test_a_file_that_may_not_be_read_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "name: cart\n")

    def refuse(_path: Path, _mode: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ConfigError, match=r"cart\.yaml: cannot be read \(Permission denied\)"):
        load("vehicles", "cart", Vehicle, root=root)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_text_at_all_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        load("vehicles", path, Vehicle)
    except ConfigError as error:
        assert "Expected" in str(error)


HEAD = "name: mine\ndescription: x\nsource: y\n"


def read(tmp_path: Path, content: str | bytes) -> Any:
    path = tmp_path / "some.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_yaml(path, "some.yaml")


def refused(tmp_path: Path, content: str | bytes) -> str:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, content)
    said = str(error.value)
    assert re.fullmatch(r"some\.yaml: [^\n]{1,400}\n  Expected [^\n]{1,200}\.", said), said
    return said


def test_what_a_reader_changes_the_next_one_does_not_see(tmp_path: Path) -> None:
    read(tmp_path, "list: [1, {a: 2}]")["list"][1]["a"] = 3
    assert read(tmp_path, "list: [1, {a: 2}]") == {"list": [1, {"a": 2}]}


def bomb(line: str) -> str:
    """Nine lines, each of which stands for ten times as much as the one before."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} " + line.format(", ".join([f"*a{n - 1}"] * 10)) for n in range(1, 10)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bomb("[{}]"), "holds more than 10000 keys and values"),
        (bomb("{{<<: [{}]}}"), "holds more than 10000 keys and values"),
        ("".join(f"k{n}: 1\n" for n in range(30_000)), "line 5000, column 8: the file holds more than 10000"),
        ("k: 1\n" * 4000, 'line 2, column 1: duplicate key "k"'),
        ("a: &a [*a]\n", "*a is a part of itself"),
        ("[" * 100_000, "nested too deeply"),
        ("{a: " * 100_000, "nested too deeply"),
        ("k: " + "x" * MOST_BYTES, "is larger than 512 KiB"),
        ("&" + "x" * 5000 + " *" + "y" * 5000, "some.yaml: line 1"),
        ("*" + "y" * 5000, "found undefined alias"),
        ("!" + "y" * 5000 + " x", "a tag."),
        ("a: !!python/object/apply:os.system [true]\n", "a tag.\n  Expected plain values, without !tags."),
        ("a: !!int x\n", "a tag."),
        ("a: 1\n---\nb: 2\n", "expected a single document"),
        ('a: "\\0"\n', r"a text with the character '\x00'"),
        ('"\\e[31m": 1\n', r"a text with the character '\x1b'"),
        (b"a: \0\n", "special characters are not allowed"),
        (b"a: \xff\n", "invalid start byte"),
        (b"\xff\xfe\x00", "truncated data"),
        ("[a, b]: 1\n", "line 1, column 1: while constructing a mapping, found unhashable key"),
        ("%YAML 9.9\n---\na: 1\n", "found incompatible YAML document"),
    ],
)
def test_what_no_person_writes_is_one_sentence(tmp_path: Path, content: str | bytes, said: str) -> None:
    assert said in refused(tmp_path, content)


def test_merge_keys_stay_what_they_are_and_files_of_the_kernel_are_read_to_their_end(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: &c {<<: *a, x: 4}\nd: {e: {<<: *c, z: 5}}\nf: {<<: *c}\n"
    content = read(tmp_path, text)
    assert content["b"] == {"x": 1, "y": 3}
    assert content["d"]["e"] == {"x": 4, "y": 2, "z": 5}
    assert content["f"] == content["c"] == {"x": 4, "y": 2}
    status = Path("/proc/self/status")
    assert status.stat().st_size == 0
    assert b"Pid:" in read_regular(status, 100_000)
    with pytest.raises(UnreadableFile, match="is larger than 0 KiB"):
        read_regular(status, 100)


@pytest.mark.parametrize(
    "content", [HEAD, "\ufeff" + HEAD, HEAD.encode("utf-16"), HEAD.replace("\n", "\r\n"), "# only\n---\n" + HEAD]
)
def test_the_encodings_of_yaml_are_read(tmp_path: Path, content: str | bytes) -> None:
    assert read(tmp_path, content) == {"name": "mine", "description": "x", "source": "y"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("-0", 0), ("+5", 5), ("5.5", 5.5), ("1.5e3", 1500.0), ("-.5", -0.5), ("true", True), ("yes", True),
        ("off", False), ("~", None), ("", None),
        # Read as YAML 1.1 they would be 8, 1000, 16, 90, 1080.2, a date and a number that no text can show.
        ("010", "010"), ("1_000", "1_000"), ("0x10", "0x10"), ("1:30", "1:30"), ("18:00.2", "18:00.2"),
        ("2024-01-01", "2024-01-01"), ("9" * 19, "9" * 19), ("0x" + "f" * 4000, "0x" + "f" * 4000), ("=", "="),
        ("00:11:22:33:44:55", "00:11:22:33:44:55"),
    ],
)  # fmt: skip
def test_only_a_plain_number_is_one(tmp_path: Path, text: str, value: object) -> None:
    found = read(tmp_path, f"k: {text}\n")["k"]
    assert (found, type(found)) == (value, type(value))


def test_nothing_but_a_regular_file_is_opened(tmp_path: Path) -> None:
    pipe, ring, folder = tmp_path / "pipe.yaml", tmp_path / "ring.yaml", tmp_path / "folder.yaml"
    os.mkfifo(pipe)
    ring.symlink_to(ring)
    folder.mkdir()
    kinds = {pipe: "is a pipe", folder: "is a folder", ring: "Too many levels",
             Path("/dev/zero"): "is a device", Path("/dev/null"): "is a device",
             tmp_path / ("x" * 300): "File name too long", Path("a\0b"): r"a\x00b: is not a path"}  # fmt: skip
    for path, said in kinds.items():
        with pytest.raises(ConfigError) as error:
            load("sla", path, Floors)
        assert said in str(error.value)
        assert "\n  Expected " in str(error.value)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "/", "~nosuchuser/x.yaml", "a\0b", "a\nb", "\ud800", "-v", "x" * 5000, "/" * 5000,
             "a/" * 3000, "../" * 50 + "etc", "*", "${X}", "\x1b[31m", "x.yaml/y.yaml", "/dev/fd/99", "//", "~"],
)  # fmt: skip
def test_a_name_that_is_none_is_one_sentence(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        load("sla", name, Floors)
    first, expected = str(error.value).split("\n")
    assert len(first) < 400 and first.isprintable()
    assert expected.startswith("  Expected ") and len(expected) <= 500


def test_of_many_mistakes_the_first_are_said_and_what_a_person_writes_is_within_the_limits(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(HEAD + "".join(f"k{n}: 1\n" for n in range(3000)))
    with pytest.raises(ConfigError) as error:
        load("sla", path, Floors)
    lines = str(error.value).splitlines()
    assert len(lines) == 21
    assert lines[0] == f"{path}: k0: unknown key."
    assert lines[-1] == f"{path}: and 2990 more mistakes."
    assert len(read(tmp_path, "".join(f"k{n}: 1\n" for n in range(MOST_VALUES // 2 - 1)))) == MOST_VALUES // 2 - 1
    assert read(tmp_path, "k: " + "x" * 10_000) == {"k": "x" * 10_000}
    assert read(tmp_path, "[" * 30 + "]" * 30) is not None
    assert read(tmp_path, "- " * 29 + "a\n") is not None
