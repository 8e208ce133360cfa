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


def command(body: str, tmp_path: Path, *, before: str = "", asked: str = "'doctor'") -> list[str]:
    """Arguments of Popen and the like for a command whose main function is `body`, as ctbench.cli calls it; `before`
    runs as its module is imported."""
    (tmp_path / "made_up.py").write_text(f"{before}\ndef main(_):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from ctbench.cli import main\n"
        "main.importlib.import_module = lambda _: __import__('made_up')\n"
        f"sys.argv[1:] = [{asked}]\n"
        "main.run()"
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
        ("raise ValueError('one\\ntwo')", 70, "run: unexpected error: ValueError: one two (traceback in "),
        ("raise ValueError('x' * 5000)", 70, "x..."),
        ("raise RecursionError", 70, "run: unexpected error: RecursionError (traceback in "),
        ("raise GeneratorExit", 70, "run: unexpected error: GeneratorExit (traceback in "),
        ("raise SystemExit(4)", 4, ""),
        ("raise SystemExit('a library gives up')", 70, "run: a library gives up\n"),
        ("raise KeyboardInterrupt", 130, "run: stopped.\n"),
        ("raise OSError(28, 'No space left', '/srv/out')", 74, "run: /srv/out: cannot be written (No space left)."),
        (
            "raise PermissionError(13, 'Permission denied', '/srv/build')",
            4,
            "run: /srv/build: Permission denied. Exp",
        ),
        ("import ctbench.base.errors as e; raise e.ConfigError('a.yaml: no.')", 4, "run: a.yaml: no.\n"),
        ("import ctbench.base.errors as e; raise e.CtbenchError('no.')", 70, "run: no.\n"),
        ("import numpie", 6, "run: a Python package is damaged or missing (No module named 'numpie'): remove "),
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
    [("return 3", 125), ("return 0", 0), ("return 1", 1), ("raise KeyboardInterrupt", 130), ("raise ValueError", 125)],
)
def test_a_bisect_learns_good_bad_or_nothing_and_stops_where_the_run_was_stopped(
    body: str, status: int, tmp_path: Path
) -> None:
    asked = "'sla', '--bisect', '--candidate', 'x'"
    assert finished(command(body, tmp_path, asked=asked), tmp_path).returncode == status


@pytest.mark.parametrize("before", ["raise ValueError('no')", "def ("])
def test_what_escapes_from_an_import_too_with_its_traceback_in_the_file_named(before: str, tmp_path: Path) -> None:
    done = run("return 0", tmp_path, before=before)

    assert done.returncode == 70
    assert done.stderr.startswith("run: unexpected error: ") and done.stderr.count("\n") == 1
    (file,) = tmp_path.glob("conntrack-sla-error-*/*.log")
    assert str(file) in done.stderr
    assert "made_up.py" in file.read_text() and "Error: " in file.read_text()


def test_the_traceback_is_in_the_folder_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    body = f"""
        import pathlib
        from ctbench.cli import error_boundary
        error_boundary.keep_tracebacks_in(pathlib.Path({str(tmp_path / "run")!r}))
        raise ValueError('no')"""
    done = run(body, tmp_path)

    assert done.returncode == 70
    assert f"(traceback in {tmp_path / 'run'}/" in done.stderr and "Traceback (most" not in done.stderr
    assert len(list((tmp_path / "run").iterdir())) == 1


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


@pytest.mark.parametrize(("redirection", "said"), [("| true", "d\n"), (">/dev/full 2>&1", "")])
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
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and os.read(process.stdout.fileno(), 4) == b"here"
    process.send_signal(number)
    _, err = process.communicate(timeout=60)

    assert process.returncode == 128 + number
    assert err in ("", "run: stopped.\n")


def test_a_command_under_nohup_goes_on(tmp_path: Path) -> None:
    hung_up = command("import os; os.kill(os.getpid(), 1); return 3", tmp_path)
    assert finished(["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *hung_up], tmp_path).returncode == 3
