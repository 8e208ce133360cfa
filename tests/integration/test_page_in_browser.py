"""The report in a real browser, under the Content-Security-Policy that Jenkins sends by default: desktop, phone, paper,
keyboard, and what axe-core finds.

The pictures stay in pytest's temporary folders for a while.
"""

import json
import shutil
from collections.abc import Iterator
from importlib.resources import files
from itertools import cycle, islice
from pathlib import Path

import pytest
from browser import Browser, find_chromium, served
from golden import GOLDEN, REFERENCES, render

from ctbench.report.reference import read_references
from ctbench.report.write import write_reports

pytestmark = [pytest.mark.integration, pytest.mark.beside_others]

#: Width and height of the window, and whether the system is set to dark.
WINDOWS = {
    "desktop": (1280, 900, False),
    "dark": (1280, 900, True),
    "small": (1000, 700, False),
    "tablet": (820, 1180, False),
    "phone": (390, 844, False),
    "narrow": (320, 640, True),
}

#: A name of 120 characters in words, and one without any place to break.
LONG_NAMES = ("Connections That Everybody Wants to See " * 3, "x" * 120)
#: Ordinary words that do not stand on one line: letters between spaces, with a mark after them.
BROKEN_WORDS = r"""(() => {
  const found = [], range = document.createRange(), texts = document.createTreeWalker(document.body, 4);
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/(?<=^|[\s(])\p{L}{2,30}(?=[\s.,;:)]|$)/gu)) {
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      const lines = [...range.getClientRects()].filter(line => line.width).map(line => Math.round(line.top));
      if (new Set(lines).size > 1) found.push(word[0]);
    }
  }
  return found;
})()"""
#: The least size of a text in a chart on the screen, pixels: its font by the scale of the picture.
SMALLEST_IN_CHARTS = """Math.min(99, ...[...document.querySelectorAll("svg text")].map(
  text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"""
OPEN_ALL = 'document.querySelectorAll("details").forEach(each => each.open = true)'


def _made_up(folder: Path, number: int, *names: str, verdict: str = "") -> None:
    """A run with so many tests, which are those of the golden run again and again, with other names; or with the one
    verdict."""
    (folder / "records").mkdir(parents=True)
    golden = [json.loads(path.read_text()) for path in sorted(GOLDEN.glob("records/*.json")) if path.stem != "broken"]
    some = [record for record in golden if verdict in ("", record["verdict"])]
    for place, record in enumerate(islice(cycle(some), number)):
        name = names[place % len(names)] if names else f"{record['test']}, Once More {place}"
        whole = record | {"test": f"{name[:116]}{place:4}", "suite": f"Everything.{name if names else record['suite']}"}
        (folder / "records" / f"r{place}.json").write_text(json.dumps(whole))


def _candidate(folder: Path, number: int) -> None:
    """A gate of a candidate with so many rows, each slower than the one before, made of those of the golden run with
    connections."""
    (folder / "records").mkdir(parents=True)
    golden = [json.loads(path.read_text()) for path in sorted(GOLDEN.glob("records/ovs-dpdk-*lived*.json"))]
    for place, record in enumerate(islice(cycle(golden), number)):
        ratio = 1.01 - 0.01 * place
        found = {"low": ratio - 0.014, "high": ratio + 0.014}
        share = {"metric": "of_build", "operator": ">=", "limit": 0.97, "written": ">= 97%", "to": "distribution"}
        verdict = "met" if found["low"] >= 0.97 else "missed" if found["high"] < 0.99 else "not measured"
        share |= {"measured": ratio, **found, "met": verdict == "met", "undecided": verdict == "not measured"}
        sides = {
            side: {"key": "ovs-dpdk/conntrack/1cpu-1rxq", "product": f"Open vSwitch {version}", "build": build,
                   "serves": dict.fromkeys(("value", "low", "high"), rate)}
            for side, version, build, rate in (("tested", "3.3.0", "", 120_400.0 * ratio),
                                               ("other", "3.1.0", "distribution", 120_400.0))
        }  # fmt: skip
        look = {"rounds": 4, "value": ratio, **found}
        start = {"first": "other", "found": look, "tested": 120_400.0 * ratio, "other": 120_400.0}
        pair = {**sides, "how": "side by side", "ratios": [ratio] * 4, "looks": [look], "sees": 0.03, "starts": [start]}
        whole = record | {
            "test": f"{record['test']}, Once More {place}", "thresholds": [share], "verdict": verdict,
            "verdict_reason": "" if verdict == "met" else "the candidate serves less",
            "evidence": record["evidence"] | {"pairs": [pair]},
        }  # fmt: skip
        (folder / "records" / f"r{place}.json").write_text(json.dumps(whole))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of runs that differ in what they measured, each in a folder by its name."""
    root = tmp_path_factory.mktemp("pages")
    shutil.copytree(GOLDEN, root / "stock")
    _made_up(root / "gate", 6)
    _made_up(root / "two", 2, verdict="met")
    _made_up(root / "270", 270)
    _made_up(root / "unmeasured", 3, verdict="not measured")
    _made_up(root / "long-names", 11, *LONG_NAMES)
    _candidate(root / "candidate", 7)
    (root / "nothing").mkdir()
    shutil.copy(GOLDEN / "without-record.json", root / "nothing")
    for folder in root.iterdir():
        write_reports([folder], folder, read_references(REFERENCES))
    return root


PAGES = ("stock", "gate", "two", "270", "unmeasured", "long-names", "candidate", "nothing")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    executable = find_chromium()
    if executable is None:
        pytest.skip("no Chromium: apt-get install --no-install-recommends chromium-headless-shell")
    with Browser(executable) as made:
        yield made


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden run's folder as a run leaves it: with its report."""
    folder = shutil.copytree(GOLDEN, tmp_path_factory.mktemp("run") / "golden-run")
    for name, text in render().items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(run: Path) -> Iterator[str]:
    with served(run) as address:
        yield address


@pytest.mark.parametrize("window", WINDOWS)
def test_nothing_is_cut_and_the_policy_forbids_nothing(
    window: str, browser: Browser, address: str, tmp_path: Path
) -> None:
    width, height, dark = WINDOWS[window]
    browser.open(f"{address}/report.html", width, height, dark=dark)
    browser.picture(tmp_path / f"{window}.png")
    content, visible, _ = browser.size()
    assert content <= visible == width
    assert [each for each in browser.cut() if "class subject" not in each] == []
    assert browser.beyond() == []
    assert browser.smallest_text() >= 12
    assert [message for message in browser.messages if "favicon" not in message] == []


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("name", PAGES)
def test_any_run_is_legible_whole_and_asks_nobody(
    name: str, width: int, browser: Browser, pages: Path, tmp_path: Path
) -> None:
    with served(pages / name) as address:
        browser.open(f"{address}/report.html", width, 900)
    assert [each for each in browser.messages if "favicon" not in each] == []
    assert {url.rpartition("/")[2] for url in browser.requests} <= {"report.html", "report.css", "favicon.ico"}
    assert all(url.startswith(address) for url in browser.requests)
    results = browser.places("#results")
    assert (results == []) == (name == "nothing")
    assert width < 1200 or all(top < 1200 for top, _ in results)

    browser.open((pages / name / "report.html").as_uri(), width, 900)
    assert browser.messages == [], "it works from a file too"
    browser.evaluate(OPEN_ALL)
    browser.picture(tmp_path / f"{name}-{width}.png")
    content, visible, _ = browser.size()
    assert content <= visible == width
    assert browser.beyond() == []
    assert [each for each in browser.cut() if "class subject" not in each] == []
    assert browser.evaluate(BROKEN_WORDS) == []
    assert min(browser.smallest_text(), browser.evaluate(SMALLEST_IN_CHARTS)) >= 12


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["stock", "candidate", "nothing"])
def test_axe_has_no_finding(name: str, dark: bool, browser: Browser, pages: Path) -> None:
    pytest.importorskip("axe_core_python", reason="no axe-core: .venv/bin/pip install -r requirements-dev.txt")
    browser.open((pages / name / "report.html").as_uri(), 1200, 900, dark=dark)
    browser.evaluate(OPEN_ALL)
    browser.evaluate(files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    found = browser.evaluate("axe.run(document, {resultTypes: ['violations']}).then(found => found.violations.map("
                             "each => each.id + ': ' + each.nodes.slice(0, 3).map(node => node.html)))")  # fmt: skip
    assert found == []


def test_the_keyboard_reaches_and_opens_every_row(browser: Browser, pages: Path) -> None:
    browser.open((pages / "gate" / "report.html").as_uri(), 1200, 900)
    rows, opened, focused = browser.evaluate("document.querySelectorAll('summary').length"), [], ""
    while focused != "BODY":
        browser.press("Tab", 9)
        focused = browser.evaluate("document.activeElement.tagName")
        if focused == "SUMMARY":
            was = browser.evaluate("document.activeElement.parentElement.open")
            browser.press("Enter", 13, "\r")
            opened.append(browser.evaluate("document.activeElement.parentElement.open") is not was)
            browser.press("Enter", 13, "\r")
    assert opened == [True] * rows != []


def test_the_answer_is_on_the_first_screens_and_a_result_is_one_line(browser: Browser, address: str) -> None:
    browser.open(f"{address}/report.html", 1200, 900)
    tops = [browser.places(selector)[0][0] for selector in ("h1", "#nearest", "#unseen", "#results")]
    assert tops == sorted(tops) and tops[-1] < 1200
    lines = browser.places("summary.line")
    assert lines and max(height for _, height in lines) < 40
    assert browser.places("#not-run")[0][0] == max(top for top, _ in browser.places("section"))


def test_the_style_sheet_is_applied_under_the_policy(browser: Browser, address: str) -> None:
    browser.open(f"{address}/report.html", 1280, 900)
    light = browser.colour("body")
    browser.open(f"{address}/report.html", 1280, 900, dark=True)
    assert light != browser.colour("body")


def test_paper_has_everything_that_the_screen_has(browser: Browser, address: str) -> None:
    browser.open(f"{address}/report.html", 1280, 900)
    browser.lay_out_for_paper()
    content, visible, _ = browser.size()
    assert content <= visible
    assert [each for each in browser.cut() if "class subject" not in each] == []
    assert browser.beyond() == []


def test_a_page_that_breaks_the_policy_is_caught(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<!DOCTYPE html><p style='color:red'>x</p><script>alert(1)</script>")
    with served(tmp_path) as other:
        browser.open(f"{other}/bad.html", 400, 300)
    assert browser.messages


def test_a_page_that_is_too_wide_is_caught(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "wide.html").write_text("<!DOCTYPE html><pre>" + "wide " * 100 + "</pre>")
    with served(tmp_path) as other:
        browser.open(f"{other}/wide.html", 390, 844)
        assert browser.beyond()


def test_a_word_that_is_broken_in_its_middle_is_caught(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text("<!DOCTYPE html><p style='width:3em;overflow-wrap:anywhere'>two measurements")
    browser.open(page.as_uri(), 400, 300)
    assert browser.evaluate(BROKEN_WORDS) == ["measurements"]
