"""Decides the promises of all records once more, by the rule of today and by that before it became one file: what
docs/evidence says in replay.csv.

Run by hand: .venv/bin/python -m tools.benchmarks.replay FOLDER...
Each row counts once, by what was found and promised, however many folders have copies of it. Both rules decide from the
evidence that the record has, each in a process of its own with its own libraries; those of before come from git. What a
record does not tell is said, and never assumed. Intervals of pairs and of closed loops are those that the record has,
since slices are not kept; those of starts follow from the starts.
"""

import csv
import hashlib
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ctbench.measure.procedure import Outcome
from ctbench.results.metrics import COSTS, METRICS, RATE_OF, RELATIVE, SERVED
from ctbench.sla.verdict import judge

try:
    from ctbench.measure import start_rule
except ImportError:  # the rule of before has it under another name
    from ctbench.measure import starts as start_rule

#: The last commit before the rule became one file.
BEFORE = "f1e9045e"
ROOT = Path(__file__).parents[2]
#: Share of its turns in which a side waited for the generator, and may be faster than was seen.
MOST_WAITED = 0.5
#: Rows of a run, where a record does not say how many: as the rule of before has it.
ROWS = 24
RATES = {rate.name for rate in RATE_OF.values()}
#: Decided by the interval of the figure, where it has one.
BY_INTERVAL = {*COSTS, *RELATIVE, *SERVED, "mutex_share", "new_flow_rate", "port_add_time", "port_delete_time",
               "statistics_time", "sweep_time", "revalidation_time", "dump_time"}  # fmt: skip

#: What decides a promise besides a method of `Rule`: the figure alone, if there is one; or nothing that can be known.
FIGURE, NOTHING = "figure", "unknown"

#: Why both rules differ, by how a promise is decided, and what is said of it before and today.
CAUSES = {
    ("rounds", "missed", "not measured"): "the first run on a kind of CPU that a floor was not measured on",
    ("starts", "missed", "not measured"): "the middle is below the floor, and not the whole interval",
    ("starts", "met", "not measured"): "starts lie farther apart than in the rows before, whose scatter is not lent",
    ("starts", "not measured", "met"): "before, 16 starts were the most, and fewer where 64 would not have decided it",
}
HEAD = ("records of", "procedure", "promise", "decided by", "promises", "by both", "differ", "before", "today", "why")

Row = dict[str, Any]
#: Of one promise, whether it is kept, and by what.
Answer = tuple[bool | None, str]


class NotInTheRecord(Exception):
    """Says what a rule would have to know besides."""


# What a record has.


def read(folders: Sequence[Path]) -> list[Row]:
    """The records below these folders, in the order of their runs, each row once."""
    found = {}
    for path in sorted(file for folder in folders for file in folder.rglob("*.json") if file.parent.name == "records"):
        try:
            record = json.loads(path.read_text())
            promised = [(each["metric"], each["limit"]) for each in record["thresholds"]]
            content = json.dumps([record["evidence"], record["figures"], promised], sort_keys=True)
            found.setdefault(hashlib.sha256(content.encode()).hexdigest(), row_of(path, record))
        except (ValueError, LookupError, TypeError, AttributeError):
            continue  # tests write files that are no records
    return sorted(found.values(), key=lambda row: (row["run"], row["started"]))


def row_of(path: Path, record: Row) -> Row:
    """What both rules are told of a row."""
    environment, evidence = record["environment"], record["evidence"]
    testbed, dut = environment["testbed"], environment["dut"]
    machine = dut.get("machine") or environment["machine"]
    asked = [each for each in record["thresholds"] if METRICS[each["metric"]].role == "promise"]
    kept = {key: record[key] for key in ("started", "test", "procedure", "metric", "figures", "limited_by")}
    trials = [(each["state"], each["trial"]) for each in evidence["trials"]]
    return kept | {
        "origin": origin(path, environment["generator"], machine),
        "run": f"{path.parent.parent} {record['run_id']}",
        "profile": {"frame_bytes": 64, "fragments": 1, **record["profile"]},
        "ceiling": evidence["ceiling"],
        "machine": {"cpu_kind": "", "kernel": "", "virtualisation": "", "usable_cpus": [], **machine},
        "image": dut.get("image") or "",
        "oversubscribed": bool(testbed.get("oversubscribe")),
        "unjudged": (testbed.get("rates") or {}).get("because") or "",
        "max_spread": record["campaign"].get("max_spread"),
        "trials": [[state, trial["attempted"], trial["completed"]] for state, trial in trials],
        "promised": asked,
        "evidence": {each["metric"]: evidence_of(record, each) for each in asked},
    }


def origin(path: Path, generator: Row, machine: Row) -> str:
    """What was measured, by the environment that the record has: only a real machine has a kernel."""
    if not generator.get("type") or not machine.get("kernel"):
        return "simulated testbeds"
    by_tests = any(part.startswith(("pytest-", "golden-run")) for part in path.parts)
    return "integration tests" if by_tests else "runs and gates"


def evidence_of(record: Row, promised: Row) -> list[Any]:
    """How one promise is decided, a method of `Rule`, and the numbers that this is done by."""
    metric, trials = promised["metric"], record["evidence"]["trials"]
    phases, found = {each["phase"] for each in trials}, record["figures"].get(metric)
    if metric in ("ratio", "of_build"):
        return of_pair(record, promised)
    if "in turn" in phases:
        return [NOTHING, "before, candidate and base were offered no load in turn"]
    sides = [side for side, word in ((True, "far above"), (False, "far below")) if word in promised["reason"]]
    if metric in RATES and ("gate" in phases or sides):
        tried = [each["state"] == "good" for each in trials if each["phase"] == "gate" and each["state"] != "invalid"]
        return ["trials", tried or sides, *(sides or [None])]
    if metric in BY_INTERVAL and found and found["low"] is not None:
        return ["interval", found]
    kept = found is not None and METRICS[metric].keeps(found["value"], promised["limit"])
    if metric not in RATES and (promised["undecided"] or kept is not promised["met"]):
        return [NOTHING, "whether all went as it has to is not in the record"]
    return [FIGURE]


def of_pair(record: Row, promised: Row) -> list[Any]:
    """Of a ratio: the starts, or the last look at the rounds."""
    likes, known = promised["metric"] == "of_build", record["evidence"].get("pairs", [])
    pair = next((each for each in known if (each["tested"]["key"] == each["other"]["key"]) is likes), None)
    if record["limited_by"] == "fault":
        return [NOTHING, "how often it crashed is not in the record"]
    if pair is None or not pair["looks"]:
        return [NOTHING, "its turns are not in the record"] if promised["measured"] is not None else [FIGURE]
    waited = [side for side in ("tested", "other") if pair[side].get("held", 0) > MOST_WAITED]
    if not (made := pair.get("starts")):
        return ["rounds", [pair["looks"][-1], pair["looks"][-1].get("whole")], waited]
    counted = [each["found"] for each in made if each["found"] and each["found"]["whole"]]
    ratios = [each["value"] for each in counted], [each["whole"]["value"] for each in counted]
    logs = [[math.log(max(ratio, 1e-9)) for ratio in each] for each in ratios]
    most = record["campaign"].get("starts") or 16
    shared = pair.get("gated_rows") or ROWS, pair.get("shared_looks") or len(start_rule.looks(most))
    more = {"waited": waited, "most": most, "shared": shared, "earlier": pair.get("before", 0)}
    return ["starts", logs, more | {"dead": not made[-1]["tested"], "undecided": promised["undecided"]}]


# A rule, in a process of its own.


class Rule:
    """What both rules have in common. Where one of them has another name for something, a subclass has that."""

    name = floors = estimate = ""
    #: Whether it leaves a row undecided before the last look.
    gives_up = False

    def __init__(self) -> None:
        #: How far apart starts lay in the rows of a run so far, of both figures.
        self.scatter: Any = defaultdict(lambda: (start_rule.Scatter(), start_rule.Scatter()))
        self.row: Row = {}
        self.floor_of = importlib.import_module(self.floors)
        self.value = getattr(importlib.import_module("ctbench.results.record_model"), self.estimate)

    def decide(self, row: Row) -> dict[str, list[str]]:
        """Word and code of each promise; of one that this rule cannot decide no word, and why."""
        answers: dict[str, Answer | None] = {}
        found: dict[str, list[str]] = {}
        self.row = row
        for promised in row["promised"]:
            metric = promised["metric"]
            how, *numbers = row["evidence"][metric]
            try:
                if metric not in METRICS:
                    raise NotInTheRecord("before, there was no such promise")
                if how == NOTHING:
                    raise NotInTheRecord(*numbers)
                answers[metric] = None if how == FIGURE else getattr(self, how)(metric, promised["limit"], *numbers)
            except NotInTheRecord as why:
                found[metric] = ["", str(why)]
        judged = self.judged([each for each in row["promised"] if each["metric"] in answers], answers)
        for each in judged.thresholds:
            word = "not measured" if each.undecided else "met" if each.met else "missed"
            own = answers[each.metric] or (None, "figure")
            overruled = word != {True: "met", False: "missed", None: "not measured"}[own[0]]
            found[each.metric] = [word, str(judged.code) if overruled else own[1]]
        return found

    def judged(self, asked: Sequence[Row], answers: Mapping[str, Answer | None]) -> Any:
        """The verdict of the row."""
        row, floor_of, machine = self.row, self.floor_of, SimpleNamespace(**self.row["machine"])
        rate = RATE_OF[row["profile"]["kind"]]
        metric = METRICS.get(row["metric"], rate)
        bound = [each for each in asked if each["bound_to"] and each["metric"] not in COSTS]
        model = "another one" if any(each.get("elsewhere") for each in bound) else machine.cpu_model
        new = hasattr(floor_of.Floor, "known_kinds") and any(each.get("new_kind") for each in asked)
        floor = floor_of.Floor(
            key="", profile=SimpleNamespace(**row["profile"]), source="",
            metric=rate if metric.name in RELATIVE or metric.name in SERVED else metric,
            thresholds={each["metric"]: self.threshold(each) for each in asked},
            machine=floor_of.BoundMachine(cpu_model=model) if bound and model else None,
            image=next((each["bound_to"].removeprefix("image ") for each in asked if each["metric"] in COSTS), ""),
            **({"known_kinds": ("another kind",)} if new else {}),
        )  # fmt: skip
        # How long a rate was held is for a sentence alone.
        held = SimpleNamespace(held=lambda _: False)
        trials = [
            SimpleNamespace(
                state=state,
                phase="",
                trial=SimpleNamespace(attempted=attempted, completed=completed),
                as_record=lambda: held,
            )
            for state, attempted, completed in row["trials"]
        ]
        figures = {name: self.value(**each) for name, each in row["figures"].items() if name in METRICS}
        kept = bool((found := row["figures"].get(row["metric"])) and found["value"])
        sampled = self.sampled(trials, {name: answer for name, answer in answers.items() if answer})
        outcome = Outcome(metric, figures, row["limited_by"], "as in the record", kept, **sampled)
        more = {key: row[key] for key in ("image", "oversubscribed", "unjudged", "max_spread")}
        return judge(outcome, floor, row["ceiling"], machine=machine, **more)

    def trials(self, metric: str, limit: float, states: Sequence[bool], far: bool | None) -> Answer:
        kept, good = None, 0
        for made, state in enumerate(states, 1):
            good += state
            if kept is None:
                kept = self.by_trials(good, made - good, far)
        return kept, "sequential-test" if kept is not None else "too-close-to-call" if states else "invalid-trials"

    def rounds(self, metric: str, limit: float, looks: Sequence[Any], waited: Collection[str]) -> Answer:
        kept = self.by_look(limit, looks, waited)
        return kept, "interval" if kept is not None else "generator-limit" if waited else "too-close-to-call"

    def starts(self, metric: str, limit: float, logs: Sequence[list[float]], more: Row) -> Answer:
        """By the looks that this rule makes, with the scatter of the rows before by its own course."""
        before, used, ends = self.scatter[self.row["run"]], 0, more["dead"]
        kept = False if more["dead"] else None
        for used in () if more["dead"] else self.looks(more):
            if used > len(logs[0]):
                break
            ends, kept = self.look([each[:used] for each in logs], before, limit, more, used)
            if ends:
                break
        for known, each in zip(before, logs, strict=True):
            known.add([] if more["dead"] else each[:used])
        # One that was left undecided had no more time, or nothing that would have decided it.
        if not ends and used > len(logs[0]) and not (self.gives_up and more["undecided"]):
            raise NotInTheRecord(f"the rule {self.name} would have made more starts")
        return (kept, "interval") if kept is not None else (None, "too-close-to-call")


class Today(Rule):
    """`ctbench.results.verdict`, and the rule of starts."""

    name, floors, estimate, gives_up = "of today", "ctbench.results.floor", "Estimate", True

    def __init__(self) -> None:
        super().__init__()
        self.rule = importlib.import_module("ctbench.results.verdict")

    def threshold(self, promised: Row) -> Any:
        keys = "metric", "operator", "limit", "written", "to", "bound_to", "smoke"
        return self.floor_of.Threshold(**{key: promised[key] for key in keys if key in promised})

    def sampled(self, trials: Sequence[Any], answers: Mapping[str, Answer]) -> Row:
        made = {metric: self.rule.Verdict(kept, self.rule.Code(code)) for metric, (kept, code) in answers.items()}
        return {"trials": tuple(trials), "verdicts": made}

    def by_trials(self, good: int, bad: int, far: bool | None) -> Any:
        return self.rule.by_trials(good, bad, far)

    def interval(self, metric: str, limit: float, found: Row, *_: Any) -> Answer:
        made = self.rule.by_interval(METRICS[metric], self.value(**found), limit, "").get(metric)
        return (made.kept, made.code) if made else (METRICS[metric].keeps(found["value"], limit), "figure")

    def by_look(self, limit: float, looks: Sequence[Any], waited: Collection[str]) -> Any:
        found = [(self.value(each["value"], "ratio", each["low"], each["high"]), True) for each in looks if each]
        return self.rule.by_ratio(found, limit, waited)

    def looks(self, more: Row) -> list[int]:
        own = start_rule.looks(more["most"])
        return [more["earlier"] + each for each in (*own, *(times * more["most"] for times in start_rule.FURTHER))]

    def look(self, logs: Any, before: Any, limit: float, more: Row, used: int) -> tuple[bool, bool | None]:
        budget = start_rule.Budget(*more["shared"])
        figures = [start_rule.Moderated.of(each, known, budget) for each, known in zip(logs, before, strict=True)]
        kept = start_rule.decide(figures, limit, more["waited"])
        return kept is not None, kept


class Before(Rule):
    """That of `BEFORE`."""

    name, floors, estimate = "of before", "ctbench.sla.floor", "Figure"

    def __init__(self) -> None:
        super().__init__()
        self.rule = importlib.import_module("ctbench.measure.procedure")

    def threshold(self, promised: Row) -> Any:
        return self.floor_of.Threshold(METRICS[promised["metric"]], promised["limit"], promised["written"])

    def sampled(self, trials: Sequence[Any], answers: Mapping[str, Answer]) -> Row:
        made = {name: self.rule.Decision(kept, "", code=self.rule.Code(code)) for name, (kept, code) in answers.items()}
        return {"steps": tuple(SimpleNamespace(observation=each) for each in trials), "decisions": made}

    def by_trials(self, good: int, bad: int, far: bool | None) -> Any:
        decided = importlib.import_module("ctbench.measure.sequential").decided
        return far if far is not None and (good, bad) == (int(far), int(not far)) else decided(good, bad)

    def interval(self, metric: str, limit: float, found: Row, *_: Any) -> Answer:
        made = self.rule.Decision.of_interval(self.value(**found), METRICS[metric], {metric: limit}, "").get(metric)
        return (made.kept, made.code) if made else (METRICS[metric].keeps(found["value"], limit), "figure")

    def by_look(self, limit: float, looks: Sequence[Any], waited: Collection[str]) -> Any:
        pair = importlib.import_module("ctbench.measure.procedures.pair")
        ends = [{key: each[key] for key in ("value", "low", "high")} if each else None for each in looks]
        return pair.decide(pair.LookRecord(**ends[0], rounds=looks[0]["rounds"], whole=ends[1]), limit, waited)

    def looks(self, more: Row) -> list[int]:
        return start_rule.looks(more["most"])

    def look(self, logs: Any, before: Any, limit: float, more: Row, used: int) -> tuple[bool, bool | None]:
        looks, waited = self.looks(more), more["waited"]
        figures = [start_rule.Estimate.of(each, known, len(looks)) for each, known in zip(logs, before, strict=True)]
        kept = start_rule.decide(*figures, limit)
        if len(waited) == 2 or (kept is not None and ("other" if kept else "tested") in waited):
            return True, None
        # A first look that hardly knew the ratio was not believed.
        if kept is not None and (used > looks[0] or figures[0].interval.width <= 0.1):
            return True, kept
        in_vain = used > looks[0] and max(each.needed(limit) for each in figures) > start_rule.GIVEN_UP * more["most"]
        return used == looks[-1] or in_vain, None


# Both next to each other.


def answers_of(rows: Sequence[Row], tree: Path) -> list[dict[str, list[str]]]:
    """What the rule of this tree says of them."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "libraries"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, __file__, "--decide"]
    given = json.dumps(rows).encode()
    made = subprocess.run(command, input=given, env=environment, check=True, stdout=subprocess.PIPE)
    found: list[dict[str, list[str]]] = json.loads(made.stdout)
    return found


def answers_of_before(rows: Sequence[Row]) -> list[dict[str, list[str]]]:
    """The same of `BEFORE`, in a worktree that exists as long."""
    with tempfile.TemporaryDirectory() as folder:
        tree, git = Path(folder, "before"), ("git", "-C", str(ROOT), "worktree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), BEFORE], check=True)
        try:
            return answers_of(rows, tree)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def lines(rows: Sequence[Row]) -> Iterator[list[Any]]:
    """Those of replay.csv: what was decided, and then what differs."""
    groups: dict[Any, Counter[str]] = defaultdict(Counter)
    differ: dict[Any, Counter[str]] = defaultdict(Counter)
    for row, before, today in zip(rows, answers_of_before(rows), answers_of(rows, ROOT), strict=True):
        for metric, (how, *_) in row["evidence"].items():
            (was, was_code), (now, now_code) = before[metric], today[metric]
            group = row["origin"], row["procedure"], metric, how
            groups[group]["both" if was and now else now_code if was else was_code] += 1
            if was and now and was != now:
                cause = CAUSES.get((how, was, now), "not known")
                differ[*group, f"{was}, {was_code}", f"{now}, {now_code}", cause][row["test"]] += 1
                groups[group]["differ"] += 1
    yield list(HEAD)
    for group, counted in sorted(groups.items()):
        both, apart = counted.pop("both", 0), counted.pop("differ", 0)
        left = "; ".join(f"{count}: {why}" for why, count in counted.items())
        yield [*group, both + counted.total(), both, apart, "", "", left]
    for (*group, was, now, cause), tests in sorted(differ.items()):
        named = ", ".join(f"{name} ({count})" for name, count in tests.items())
        yield [*group, "", "", tests.total(), was, now, f"{cause}: {named}"]


def main() -> None:
    if sys.argv[1:] == ["--decide"]:
        rule = Before() if hasattr(start_rule, "GIVEN_UP") else Today()
        json.dump([rule.decide(row) for row in json.load(sys.stdin)], sys.stdout)
        return
    rows = read([Path(folder) for folder in sys.argv[1:]])
    csv.writer(sys.stdout, lineterminator="\n").writerows(lines(rows))


if __name__ == "__main__":
    main()
