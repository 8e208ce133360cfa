"""The report in a real browser, under the Content-Security-Policy that Jenkins sends by default: desktop, phone, paper,
keyboard, and what axe-core finds."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import chromium, complaints, illegible, open_page, served
from golden import GOLDEN, render

from ctbench.report.write import write_reports

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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
            "test": f"{record['test']}, Once More {place}",
            "thresholds": [share],
            "verdict": verdict,
            "verdict_reason": "" if verdict == "met" else "the candidate serves less",
            "evidence": record["evidence"] | {"pairs": [pair]},
        }
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
        write_reports([folder], folder)
    return root


PAGES = ("stock", "gate", "two", "270", "unmeasured", "long-names", "candidate", "nothing")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Opens pages, which are closed with the test."""
    yield functools.partial(open_page, browser)
    for context in browser.contexts:
        context.close()


def places(page: Page, selector: str) -> list[dict[str, float]]:
    """The box of every element that a selector finds."""
    return page.locator(selector).evaluate_all("found => found.map(each => each.getBoundingClientRect().toJSON())")


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


# The picture of numbers.html is as wide as a tablet; on a phone it scrolls.
@pytest.mark.parametrize(
    ("window", "name"),
    [(window, "sla.html") for window in WINDOWS]
    + [(window, "numbers.html") for window in ("desktop", "dark", "tablet")],
)
def test_nothing_is_cut_and_the_policy_forbids_nothing(
    window: str, name: str, opened: Callable[..., Page], address: str
) -> None:
    width, height, dark = WINDOWS[window]
    page = opened(f"{address}/{name}", width, height, dark=dark)
    assert illegible(page) == []
    assert complaints(page) == []


@pytest.mark.parametrize("width", [1200, 400])
@pytest.mark.parametrize("name", PAGES)
def test_any_run_is_legible_whole_and_asks_nobody(
    name: str, width: int, opened: Callable[..., Page], pages: Path
) -> None:
    with served(pages / name) as address:
        page = opened(f"{address}/sla.html", width)
    assert complaints(page) == []
    assert {request.url for request in page.requests()} == {f"{address}/sla.html", f"{address}/report.css"}
    results = [place["y"] for place in places(page, "#results")]
    assert (results == []) == (name == "nothing")
    assert width < 1200 or all(top < 1600 for top in results)

    page = opened((pages / name / "sla.html").as_uri(), width)
    page.evaluate(OPEN_ALL)
    assert illegible(page) == []
    assert complaints(page) == [], "it works from a file too"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["stock", "candidate", "nothing"])
def test_axe_has_no_finding(name: str, dark: bool, opened: Callable[..., Page], pages: Path) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="no axe-core: ./run tests installs it")
    page = opened((pages / name / "sla.html").as_uri(), 1200, dark=dark)
    page.evaluate(OPEN_ALL)
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response
    assert [(each["id"], [node["html"] for node in each["nodes"][:3]]) for each in found["violations"]] == []
    assert found["passes"]


def test_the_keyboard_reaches_and_opens_every_row(opened: Callable[..., Page], pages: Path) -> None:
    page = opened((pages / "gate" / "sla.html").as_uri(), 1200)
    state = "[document.activeElement.tagName, document.activeElement.parentElement.open]"
    was_open, focused = [], ""
    while focused != "BODY":
        page.keyboard.press("Tab")
        focused, was = page.evaluate(state)
        if focused == "SUMMARY":
            page.keyboard.press("Enter")
            was_open.append((was, page.evaluate(state)[1]))
            page.keyboard.press("Enter")
    assert was_open and all(was is not now for was, now in was_open)
    assert len(was_open) == page.locator("summary").count()


def test_the_answer_is_on_the_first_screens_and_a_result_is_one_line(opened: Callable[..., Page], address: str) -> None:
    page = opened(f"{address}/sla.html", 1200)
    tops = [places(page, selector)[0]["y"] for selector in ("h1", "#nearest", "#unseen", "#results")]
    assert tops == sorted(tops) and tops[-1] < 1600
    lines = places(page, "summary.line")
    assert lines and max(line["height"] for line in lines) < 40
    assert places(page, "#not-run")[0]["y"] > max(place["y"] for place in places(page, "section"))


def test_paper_has_everything_that_the_screen_has(opened: Callable[..., Page], address: str) -> None:
    """A4 with margins of 14 mm."""
    page = opened(f"{address}/sla.html", 688, 1016)
    page.emulate_media(media="print")
    assert [each for each in illegible(page) if not each.startswith("small")] == [], "9 points are enough on paper"
