"""The software generator's kernel as C: both languages have one layout, no compiler has a complaint; and what is said
where it cannot be compiled or kept."""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ctgen import layout, library
from ctgen.errors import GeneratorError, Unavailable

STRUCTS = {
    name: layout.struct(name) for name in re.findall(r"^struct (\w+) \{$", layout.HEADER.read_text(), re.MULTILINE)
}


def compiled(compiler: str, source: Path, *flags: str) -> str:
    """What the compiler says."""
    command = [compiler, *flags, f"-I{library.SOURCES}", "-c", "-o", "/dev/null", str(source)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_python_and_the_compiler_have_the_same_layout(tmp_path: Path) -> None:
    checks = [f'_Static_assert(sizeof(struct {name}) == {ctypes.sizeof(each)}, "");' for name, each in STRUCTS.items()]
    for name, struct in STRUCTS.items():
        for field, *_ in struct._fields_:
            place = getattr(struct, field).offset
            checks.append(f'_Static_assert(offsetof(struct {name}, {field}) == {place}, "{name}.{field}");')
    source = tmp_path / "layout.c"
    source.write_text("\n".join(["#include <stddef.h>", '#include "layout.h"', *checks]))
    assert len(checks) > 200
    assert compiled(library.COMPILER, source) == ""
    # The check sees a difference.
    source.write_text(source.read_text().replace(") == 0,", ") == 8,"))
    assert "static assertion failed" in compiled(library.COMPILER, source)


@pytest.mark.parametrize("source", sorted(library.SOURCES.glob("*.c")), ids=lambda path: path.name)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_no_compiler_has_a_complaint(compiler: str, source: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    # What is compiled has been through the optimizer, with its warnings, at set-up.
    flags = [flag for flag in library.FLAGS if flag != "-shared"]
    assert compiled(compiler, source, *flags, "-fsyntax-only", "-Wshadow", "-Wstrict-prototypes") == ""


def test_without_a_compiler_the_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "COMPILER", "no-such-compiler")
    with pytest.raises(Unavailable, match="gcc and libc6-dev"):
        library.built([], library.FLAGS)


def test_what_cannot_be_compiled_is_said_in_the_compilers_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_cache", lambda: tmp_path / "kernels")
    source = tmp_path / "broken.c"
    source.write_text("int f(void) { return missing; }\n")
    with pytest.raises(GeneratorError, match=r"could not compile .*broken\.c:1:\d+: error: .*missing"):
        library.built([source], library.FLAGS)
    assert list(tmp_path.glob("kernels/*")) == []


def test_it_is_compiled_once_for_each_state_of_source_and_flags(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_cache", lambda: tmp_path / "kernels")
    source = tmp_path / "one.c"
    source.write_text("int f(void) { return 1; }\n")
    first = library.built([source], library.FLAGS)
    when = first.stat().st_mtime_ns
    assert library.built([source], library.FLAGS) == first and first.stat().st_mtime_ns == when
    assert library.built([source], (*library.FLAGS, "-g")) != first
    source.write_text("int f(void) { return 2; }\n")
    assert library.built([source], library.FLAGS) != first
    assert len([*tmp_path.glob("kernels/*")]) == 3


def test_a_kernel_that_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"\x7fELF")
    monkeypatch.setattr(library, "built", lambda *_: broken)
    with pytest.raises(GeneratorError, match=r"cannot be loaded: .*Delete .*broken\.so, and it is compiled"):
        library.kernel.__wrapped__()


def test_a_python_without_a_virtual_environment_keeps_it_in_the_cache_of_the_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert library._cache() == tmp_path / "conntrack-sla" / "ctgen"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_cache", lambda: Path("/proc/no-such-folder"))
    source = tmp_path / "one.c"
    source.write_text("int f(void) { return 1; }\n")
    with pytest.raises(GeneratorError, match=r"/proc/no-such-folder: .* XDG_CACHE_HOME"):
        library.built([source], library.FLAGS)
