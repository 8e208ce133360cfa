"""A YAML file that is wrong, hostile or not a file ends in a sentence with file, key and expectation."""

import os
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import BeforeValidator, Field

from ctbench.base.errors import ConfigError
from ctbench.base.files import UnreadableFile, read_regular
from ctbench.base.quantities import Ratio
from ctbench.base.units import parse_duration, parse_number
from ctbench.base.yaml_files import Name, YamlModel, load, names
from ctbench.results.published import read_published

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
        "variables/vehicles/carts.yaml: no such file.\n  Expected a path, or one of the names in variables/vehicles: "
        'bus, cart. Did you mean "cart"?'
    )
    assert names("vehicles", root=root) == ["bus", "cart"]


def test_a_file_of_the_kernel_that_says_it_is_empty_is_read_to_its_end_and_no_further() -> None:
    status = Path("/proc/self/status")
    assert status.stat().st_size == 0
    assert b"Pid:" in read_regular(status, 100_000)
    with pytest.raises(UnreadableFile, match="is larger than 0 KiB"):
        read_regular(status, 100)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"[" * 60_000, b"9" * 60_000, b" " * 100_000, b"null", b"[]", b'{"schema_version": 1e999}',
        b'{"' + b"k" * 60_000 + b'": 1}', b'{"number": "\\ud800"}', b"\0",
    ],
)  # fmt: skip
def test_a_published_figure_that_is_none_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "figure-01.json").write_bytes(content)
    with pytest.raises(ConfigError) as error:
        read_published(tmp_path)
    first, expected = str(error.value).split("\n")
    assert first.startswith(f"{tmp_path}/figure-01.json: ") and len(first) <= 600 and first.isprintable()
    assert expected.startswith("  Expected ")


def test_a_pipe_among_published_figures_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "figure-01.json")
    with pytest.raises(ConfigError, match="is a pipe"):
        read_published(tmp_path)
