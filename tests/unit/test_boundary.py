"""Whatever escapes from a command of `./run` becomes one sentence, an exit status, and a file with the traceback."""

import os
import shlex
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

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
    return {**os.environ, "PYTHONPATH": str(ROOT / "libraries"), "TMPDIR": str(tmp_path), **more}


def finished(argv: list[str], tmp_path: Path, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        argv, env=environment(tmp_path, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def run(body: str, tmp_path: Path, *, before: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
    return finished(command(body, tmp_path, before=before), tmp_path, **more)


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ("raise ValueError('one\\ntwo')", 70, "run: unexpected error, ValueError: one two. This is a fault"),
        ("raise ValueError('x' * 5000)", 70, "x..."),
        ("raise RecursionError", 70, "run: unexpected error, RecursionError. This"),
        ("raise GeneratorExit", 70, "run: unexpected error, GeneratorExit. This"),
        ("raise SystemExit(4)", 4, ""),
        ("raise SystemExit('a library gives up')", 70, "run: a library gives up\n"),
        (
            "import tempfile; tempfile.tempdir = None; tempfile._candidate_tempdir_list = list; tempfile.gettempdir()",
            6,
            "run: no folder for temporary files can be written",
        ),
        ("raise KeyboardInterrupt", 130, "run: stopped.\n"),
        ("raise OSError(28, 'No space left', '/srv/out')", 74, "run: /srv/out: cannot be written (No space left)."),
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


@pytest.mark.parametrize(
    ("body", "status"),
    [(f"return {status}", 125) for status in (2, 3, 4, 5, 6, 70, 74)]
    + [("return 0", 0), ("return 1", 1), ("return 143", 143), ("raise KeyboardInterrupt", 130)]
    + [("raise SystemExit(2)", 125), ("raise ValueError", 125), ("import ctbench.nowhere", 125)],
)
def test_a_bisect_learns_good_bad_or_nothing_and_stops_where_the_run_was_stopped(
    body: str, status: int, tmp_path: Path
) -> None:
    argv = command(body, tmp_path)
    as_sla = [*argv[:-1], argv[-1].replace("'made-up'", "'sla'"), "--bisect"]
    assert finished(as_sla, tmp_path).returncode == status


@pytest.mark.parametrize("before", ["raise ValueError('no')", "import ctbench.nowhere", "def ("])
def test_what_escapes_from_an_import_too_with_its_traceback_in_the_file_named(before: str, tmp_path: Path) -> None:
    done = run("return 0", tmp_path, before=before)

    assert done.returncode == 70
    assert done.stderr.startswith("run: unexpected error, ") and done.stderr.count("\n") == 1
    (file,) = tmp_path.glob("error-*.txt")
    assert str(file) in done.stderr
    assert "made_up.py" in file.read_text() and "Error: " in file.read_text()


@pytest.mark.parametrize(("folder", "shown"), [("run", False), ("nowhere", True)])
def test_the_traceback_is_in_the_folder_of_the_run_or_is_shown(folder: str, shown: bool, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    body = f"""
        import pathlib
        from ctbench.cli import error_boundary
        error_boundary.keep_tracebacks_in(pathlib.Path({str(tmp_path / folder)!r}))
        raise ValueError('no')"""
    done = run(body, tmp_path)

    assert done.returncode == 70
    assert (str(tmp_path / folder / "error-") in done.stderr) != shown
    assert len(list(tmp_path.glob("run/error-*.txt"))) == (not shown)
    assert ("Traceback (most recent call last)" in done.stderr) == shown


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


FULL = "run: what is shown here cannot be written (No space left on device): the rest of it is dropped.\n"


@pytest.mark.parametrize(
    ("redirection", "said"),
    [("| true", "d\n"), ("2>&1 | true", ""), (">/dev/full", f"{FULL}d\n"), (">/dev/full 2>&1", "")],
)
def test_a_stream_that_takes_nothing_ends_nothing(redirection: str, said: str, tmp_path: Path) -> None:
    line = f"{shlex.join(command(LOUD, tmp_path))} {redirection}; exit ${{PIPESTATUS[0]}}"
    done = finished(["/bin/bash", "-c", line], tmp_path)

    assert (done.returncode, done.stderr) == (3, said)


def test_an_ascii_terminal_gets_what_it_can_show(tmp_path: Path) -> None:
    done = run("print('µ ± \\udce4'); return 3", tmp_path, PYTHONIOENCODING="ascii", LC_ALL="C")

    assert (done.returncode, done.stdout) == (3, "\\xb5 \\xb1 \\udce4\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("moment", ["import", "main"])
def test_a_signal_at_any_moment_is_one_line_and_a_status(moment: str, number: signal.Signals, tmp_path: Path) -> None:
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
    stopped = ["env", "--block-signal=INT", "sh", "-c", 'kill -INT $$; exec "$@"', "sh"]
    done = finished([*stopped, *command("return 0", tmp_path)], tmp_path)

    assert (done.returncode, done.stderr) == (130, "run: stopped.\n")


def test_a_command_under_nohup_goes_on(tmp_path: Path) -> None:
    hung_up = command("import os; os.kill(os.getpid(), 1); return 3", tmp_path)
    assert finished(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *hung_up], tmp_path).returncode == 3


@pytest.mark.parametrize(("name", "damaged"), [("robot", True), ("ctbench.nowhere", False)])
def test_a_damaged_package_is_said_and_installed_again_by_the_next_command(
    name: str, damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ctbench.cli import error_boundary

    venv = tmp_path / ".venv"
    venv.mkdir()
    (venv / "stamp-requirements").touch()
    monkeypatch.setattr(error_boundary, "VENV", venv)
    monkeypatch.setattr(error_boundary.sys, "prefix", str(venv))
    monkeypatch.setattr(error_boundary.tempfile, "tempdir", str(tmp_path))

    assert error_boundary.told("sla", ImportError("no", name=name)) == (6 if damaged else 70)
    said = capsys.readouterr().err
    assert ("are damaged" in said) == damaged and said.count("\n") == 1
    assert (venv / "stamp-requirements").exists() != damaged
