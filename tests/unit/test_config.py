"""A mistake in a file is a sentence with file, key and expectation; never a traceback, never a guess."""

import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from ctbench.base.errors import ConfigError
from ctbench.base.paths import ROOT
from ctbench.base.quantities import Number, Ratio, Seconds
from ctbench.base.spelling import did_you_mean
from ctbench.base.yaml_files import Name, YamlModel, load, names


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


def test_a_path_is_taken_as_it_is_and_may_have_any_name_inside(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("name: cart\n")
    assert load("vehicles", tmp_path / "mine.yaml", Vehicle).name == "cart"
    assert load("vehicles", str(tmp_path / "mine.yaml"), Vehicle).file == str(tmp_path / "mine.yaml")


def test_the_model_cannot_be_changed(root: Path) -> None:
    write(root, "name: cart\n")
    cart = load("vehicles", "cart", Vehicle, root=root)
    with pytest.raises(ValueError, match="frozen"):
        cart.speed = 5


def test_an_unknown_file_is_answered_with_those_that_there_are(root: Path) -> None:
    write(root, "name: cart\n")
    write(root, "name: bus\n", "bus")
    with pytest.raises(ConfigError) as error:
        load("vehicles", "carts", Vehicle, root=root)
    assert str(error.value) == (
        "variables/vehicles/carts.yaml: no such file.\n  Expected a path, or one of the names in variables/vehicles: "
        'bus, cart. Did you mean "cart"?'
    )
    assert names("vehicles", root=root) == ["bus", "cart"]


def test_a_folder_is_no_file(root: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load("vehicles", root, Vehicle)


def test_a_copied_file_must_not_pass_for_the_original(root: Path) -> None:
    assert mistake(root, "name: bus\n") == (
        'variables/vehicles/cart.yaml: name: "bus" is not the name of the file.\n  Expected "cart".'
    )


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
        ("name: cart\n---\nname: cart\n", "expected a single document"),
        ("name: !!python/object:os.system cart\n", "a tag."),
        ("name: *nobody\n", "undefined alias"),
        ("name: \x01\n", "Expected a text file in UTF-8."),
        ("? [a, b]\n: 1\n", "cart.yaml: line 1, column 3: while constructing a mapping, found unhashable key"),
        ("[" * 3000, "nested too deeply"),
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
        ("", 'cart.yaml: is empty.\n  Expected keys and values, as in '),
        ("- a\n", "cart.yaml: holds a list, not keys and values."),
        ("name: cart\nsped: 5\n", 'cart.yaml: sped: unknown key.\n  Expected one of: drive, electric, name, seats, '
                                  'slip, speed, wait, wheels. Did you mean "speed"?'),
        ("name: cart\nwheels: {front: {size: 2, spoke: wood}}\n",
         'cart.yaml: wheels.front.spoke: unknown key.\n  Expected one of: size, spokes. Did you mean "spokes"?'),
        ("name: cart\nseats: [{size: 1}, {size: 2, x: 1}]\n",
         "cart.yaml: seats[1].x: unknown key.\n  Expected one of: size, spokes."),
        ("name: cart\ndrive: {kind: sail, aera: 5}\n", 'drive.aera: unknown key.\n  Expected one of: area, kind. '
                                                      'Did you mean "area"?'),
        ("name: cart\ndrive: {kind: sale, area: 5}\n", 'cart.yaml: drive.kind: "sale" is not known.\n  Expected one '
                                                     'of: sail, motor. Did you mean "sail"?'),
        ("name: cart\ndrive: {area: 5}\n", "cart.yaml: drive.kind: is missing.\n  Expected"),
        ("name: cart\ndrive: {kind: sail, area: 5q}\n", 'cart.yaml: drive.area: "5q" is not a number.\n  Expected a'),
        ("speed: 5\n", "cart.yaml: name: is missing.\n  Expected"),
        ("name: cart\nwheels: {front: {}}\n", "cart.yaml: wheels.front.size: is missing."),
        ("name: cart\nwheels: {front: {size: 0}}\n", "cart.yaml: wheels.front.size: 0 does not fit.\n  Expected a "
                                                    "number of at least 1."),
        ("name: cart\nwheels: {front: {size: two}}\n", 'wheels.front.size: "two" does not fit.\n  Expected a whole '),
        ("name: cart\nwheels: {front: {size: yes}}\n", "wheels.front.size: true does not fit.\n  Expected a whole "),
        ("name: cart\nwheels: {front: }\n", "wheels.front: nothing does not fit.\n  Expected keys and values."),
        ("name: cart\nwheels: {front: {size: 1, spokes: woood}}\n",
         'spokes: "woood" is not known.\n  Expected one of: wood, steel. Did you mean "wood"?'),
        ("name: cart\nelectric: 1\n", "electric: 1 does not fit.\n  Expected true or false."),
        ("name: Cart!\n", 'cart.yaml: name: "Cart!" is not a name.\n  Expected small letters, digits and dashes.'),
        ("name: cart\nslip: 0.02\n", "cart.yaml: slip: 0.02 is not a percentage.\n  Expected a percentage"),
        ("name: cart\nspeed: .nan\n", "cart.yaml: speed: nan is not a number."),
        ("name: cart\n5: x\n", "cart.yaml: 5: "),
    ],
)  # fmt: skip
def test_a_mistake_in_the_content_is_said_with_file_key_and_expectation(root: Path, text: str, said: str) -> None:
    message = mistake(root, text)
    assert said in message
    assert message.startswith("variables/vehicles/cart.yaml: ")
    assert "pydantic" not in message


def test_two_mistakes_are_said_at_once(root: Path) -> None:
    assert mistake(root, "name: cart\nspeed: x\nslip: y\n").count("Expected") == 2


def test_a_file_that_may_not_be_read_is_said(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, "name: cart\n")

    def refuse(_path: Path, _flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ConfigError, match=r"cart\.yaml: cannot be read \(Permission denied\)"):
        load("vehicles", "cart", Vehicle, root=root)


@given(st.text(max_size=60))
def test_no_text_at_all_ends_in_a_traceback(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        load("vehicles", path, Vehicle)
    except ConfigError as error:
        assert "Expected" in str(error)


def test_the_checkout_is_found_from_the_package() -> None:
    assert (ROOT / "libraries/ctbench/base/yaml_files.py").is_file()


def test_a_word_that_is_like_none_of_the_choices_gets_no_guess() -> None:
    assert did_you_mean("zebra", ["quick", "gate"]) == ""
