"""Whatever escapes from a command of `./run` becomes one sentence, an exit status, and a file with the traceback."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).resolve().parents[2]


def command(body: str, tmp_path: Path, *, before: str = "", **environment: str) -> list[str]:
    """Arguments of Popen and the like for a command whose main function is `body`, as ctbench.cli calls it; `before`
    runs as its module is imported."""
    (tmp_path / "made_up.py").write_text(f"{before}\ndef main():\n{textwrap.indent(textwrap.dedent(body), '    ')}\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from ctbench.cli.error_boundary import enter\n"
        "enter('made-up', lambda: __import__('made_up').main)"
    )
    return [sys.executable, "-c", code]


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        **os.environ, "PYTHONPATH": str(ROOT / "libraries"), "TMPDIR": str(tmp_path), **more,
    }  # fmt: skip


def run(body: str, tmp_path: Path, *, before: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(body, tmp_path, before=before),
        env=environment(tmp_path, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


DISK = "raise OSError(__import__('errno').{}, 'No space left on device', '/srv/out')"


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ("raise ValueError('one\\ntwo')", 70, "run: unexpected error, ValueError: one two. This is a fault"),
        ("raise ValueError('x' * 5000)", 70, "x..."),
        ("raise RecursionError", 70, "run: unexpected error, RecursionError. This"),
        ("raise MemoryError", 70, "run: unexpected error, MemoryError. This"),
        ("raise GeneratorExit", 70, "run: unexpected error, GeneratorExit. This"),
        ("raise SystemExit('a reason')", 70, "run: a reason\n"),
        ("raise SystemExit(4)", 4, ""),
        ("raise SystemExit", 0, ""),
        ("raise KeyboardInterrupt", 130, "run: stopped.\n"),
        (DISK.format("ENOSPC"), 74, "run: /srv/out: cannot be written (No space left on device)."),
        (DISK.format("EROFS"), 74, "run: /srv/out: cannot be written"),
        ("import ctbench.base.errors as e; raise e.ConfigError('a.yaml: no.')", 4, "run: a.yaml: no.\n"),
        ("import ctbench.base.errors as e; raise e.CtbenchError('no.')", 70, "run: no.\n"),
        ("return 3", 3, ""),
    ],
)
def test_what_escapes_is_one_sentence_and_a_status(body: str, status: int, sentence: str, tmp_path: Path) -> None:
    done = run(body, tmp_path)

    assert (done.returncode, done.stdout) == (status, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == bool(sentence)
    assert len(done.stderr) < 1000


@pytest.mark.parametrize("before", ["raise ValueError('no')", "import ctbench.nowhere", "def ("])
def test_what_escapes_from_an_import_too_and_its_traceback_is_in_the_file_that_the_sentence_names(
    before: str, tmp_path: Path
) -> None:
    done = run("return 0", tmp_path, before=before)

    assert done.returncode == 70
    assert done.stderr.startswith("run: unexpected error, ") and done.stderr.count("\n") == 1
    (file,) = tmp_path.glob("error-*.txt")
    assert str(file) in done.stderr
    assert "made_up.py" in file.read_text() and "Error: " in file.read_text()


def test_the_traceback_is_in_the_folder_of_the_run_where_there_is_one(tmp_path: Path) -> None:
    (folder := tmp_path / "run").mkdir()
    body = f"""
        import pathlib
        from ctbench.cli import error_boundary
        error_boundary.keep_tracebacks_in(pathlib.Path({str(folder)!r}))
        raise ValueError('no')"""
    done = run(body, tmp_path)

    assert len(list(folder.glob("error-*.txt"))) == 1
    assert str(folder / "error-") in done.stderr


def test_where_no_folder_takes_the_traceback_it_is_shown(tmp_path: Path) -> None:
    body = """
        from ctbench.cli import error_boundary
        error_boundary._write_traceback = lambda *_: None
        raise ValueError('no')"""
    done = run(body, tmp_path)

    assert done.returncode == 70
    assert done.stderr.startswith("run: unexpected error, ValueError: no. Its traceback follows, as no folder")
    assert "Traceback (most recent call last)" in done.stderr


def test_an_error_in_a_thread_is_one_sentence_and_ends_nothing(tmp_path: Path) -> None:
    body = """
        import threading
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        return 3"""
    done = run(body, tmp_path)

    assert done.returncode == 3
    assert "ZeroDivisionError" in done.stderr and done.stderr.count("\n") == 1


LOUD = "print('a' * 100000 + '\\n' + 'b' * 100000); print('c'); import sys; print('d', file=sys.stderr); return 3"


@pytest.mark.parametrize("streams", [("stdout",), ("stderr",), ("stdout", "stderr")], ids="+".join)
def test_a_reader_that_goes_away_ends_nothing(streams: tuple[str, ...], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | dict.fromkeys(streams, write)
    process = subprocess.Popen(command(LOUD, tmp_path), env=environment(tmp_path), text=True, **given)  # type: ignore
    os.close(write)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 3
    assert (out or "").endswith("c\n" if "stdout" not in streams else "")
    assert (err or "") == ("d\n" if "stderr" not in streams else "")


FULL = "run: what is shown here cannot be written (No space left on device): the rest of it is dropped.\n"


@pytest.mark.parametrize(
    ("redirection", "said"),
    [
        (">/dev/full", f"{FULL}d\n"),
        (">&-", "d\n"),
        ("2>&-", ""),
        ("<&-", "d\n"),
        (">&- 2>&- <&-", ""),
        (">&- 2>/dev/full", ""),
    ],
)  # fmt: skip
def test_a_stream_that_takes_nothing_ends_nothing(redirection: str, said: str, tmp_path: Path) -> None:
    quoted = "' '".join(str(part).replace("'", "'\\''") for part in command(LOUD, tmp_path))
    done = subprocess.run(
        ["/bin/bash", "-c", f"'{quoted}' {redirection}"], env=environment(tmp_path), capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stderr) == (3, said)


def test_a_file_that_is_opened_never_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    body = f"file = open({str(tmp_path / 'record')!r}, 'w'); print('said'); file.write('kept'); file.close(); return 3"
    quoted = "' '".join(str(part).replace("'", "'\\''") for part in command(body, tmp_path))
    done = subprocess.run(["/bin/bash", "-c", f"'{quoted}' >&-"], env=environment(tmp_path), timeout=60, check=False)

    assert done.returncode == 3
    assert (tmp_path / "record").read_text() == "kept"


def test_a_terminal_that_does_not_block_is_waited_for(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    process = subprocess.Popen(command(LOUD, tmp_path), env=environment(tmp_path), stdout=write, stderr=write)  # type: ignore
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()

    assert process.wait(60) == 3
    assert len(said) == 200000 + len("\n\nc\nd\n")


def test_an_ascii_terminal_gets_what_it_can_show(tmp_path: Path) -> None:
    done = run("print('µ ± \\udce4'); return 3", tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C")

    assert (done.returncode, done.stdout) == (3, "\\xb5 \\xb1 \\udce4\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["import", "main"])
def test_a_signal_at_any_moment_is_one_line_and_its_own_status(
    moment: str, number: signal.Signals, tmp_path: Path
) -> None:
    wait = "import os, time; os.write(1, b'here'); time.sleep(60)"
    body, before = ("return 0", wait) if moment == "import" else (f"{wait}; return 0", "")
    process = subprocess.Popen(
        command(body, tmp_path, before=before),
        env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None and os.read(process.stdout.fileno(), 4) == b"here"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 128 + number
    assert err in ("", "run: stopped.\n")


def test_a_signal_that_came_before_anything_waits_for_the_boundary(tmp_path: Path) -> None:
    process = subprocess.Popen(
        ["env", "--block-signal=INT", "sh", "-c", 'kill -INT $$; exec "$@"', "sh", *command("return 0", tmp_path)],
        env=environment(tmp_path), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, "run: stopped.\n")


def test_a_command_under_nohup_goes_on(tmp_path: Path) -> None:
    hung_up = command("import os; os.kill(os.getpid(), 1); return 3", tmp_path)
    process = subprocess.run(
        ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *hung_up],
        env=environment(tmp_path), timeout=60, check=False,
    )  # fmt: skip

    assert process.returncode == 3


@pytest.mark.parametrize(
    ("error", "damaged"),
    [
        (ModuleNotFoundError("No module named 'robot'", name="robot"), True),
        (ModuleNotFoundError("No module named 'ctbench.nowhere'", name="ctbench.nowhere"), False),
        (ImportError("cannot import name 'x' from 'yaml'", name="yaml"), True),
        (ImportError("cannot import name 'x' from 'ctbench.cli'", name="ctbench.cli"), False),
        (SyntaxError("invalid", ("/elsewhere/mine.py", 1, 1, "def (")), False),
        (ValueError("no"), False),
    ],
    ids=str,
)
def test_a_damaged_package_is_said_and_installed_again_by_the_next_command(
    error: Exception, damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ctbench.cli import error_boundary

    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "stamp-requirements").touch()
    monkeypatch.setattr(error_boundary, "VENV", venv)
    monkeypatch.setattr(error_boundary.sys, "prefix", str(venv))
    monkeypatch.setattr(error_boundary.tempfile, "tempdir", str(tmp_path))

    assert error_boundary.told("sla", error) == (6 if damaged else 70)
    said = capsys.readouterr().err
    assert ("are damaged" in said) == damaged and said.count("\n") == 1
    assert (venv / "stamp-requirements").exists() != damaged
