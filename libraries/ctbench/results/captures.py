"""What a DUT had to say of its failure, as files of a run: a folder for each test that failed."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path

from ctbench.base.errors import OutputError

#: Next to `records/`.
FOLDER = "captures"


def write(texts: Mapping[str, str], output: Path, name: str) -> str:
    """Write each text to `captures/<name>/<its name>.txt` below `output`; a second failure of the same test gets the
    suffix `-2` and so on. Returns the folder, relative to `output`. Raises `OutputError` where it cannot be written."""
    try:
        folder = _new_folder(output / FOLDER, name)
        for each, text in texts.items():
            (folder / f"{each}.txt").write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            f"{output / FOLDER}: what the DUT said of its failure could not be written: {error.strerror}."
        ) from None
    return str(folder.relative_to(output))


def _new_folder(parent: Path, name: str) -> Path:
    """Two processes of a pool may want the same name."""
    for number in count(1):
        folder = parent / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("not reached: count has no end")
