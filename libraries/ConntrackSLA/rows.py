"""The rows of a suite as read from its tests, and the number of rows of a run that compare two builds."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from robot.errors import DataError, RobotError
from robot.libraries.BuiltIn import BuiltIn
from robot.model import TagPatterns
from robot.running import For, TestCase, TestSuite
from robot.running.resourcemodel import ResourceFile
from robot.variables import Variables, contains_variable, is_dict_variable, is_list_variable

from ConntrackSLA.arguments import next_to, ruleset_name
from ConntrackSLA.promising import (
    FORMS,
    KEYWORDS,
    ROW,
    Form,
    arguments_of,
    is_by_name,
    no_option,
    promised_in,
    topology_of,
)
from ctbench.base.errors import ConfigError, CtbenchError, MissingResource
from ctbench.base.units import quoted
from ctbench.base.yaml_files import shown_path
from ctbench.dut.cable import CABLE
from ctbench.dut.topology import Topology
from ctbench.measure.promises import PROMISES, Promise
from ctbench.run.settings import Named, OwnEntry, RunSettings
from ctbench.traffic.profiles import Profile, load_profile

#: The keyword whose one argument is a profile.
OF_THE_GENERATOR = "Generator Ceiling Should Meet SLA"

#: How what a test says with variables becomes what it means when it runs.
Resolve = Callable[[str], object]


@dataclass(frozen=True)
class Row:
    """A promise of one topology with one profile."""

    test: TestCase
    topology: Topology
    profile: Profile
    promise: Promise
    #: What it promises itself; None: the SLA file does.
    own: OwnEntry | None = None


def rows(suite: TestSuite) -> list[Row]:
    """Return the rows of a suite and of the suites in it."""
    return [row for test in suite.all_tests if (row := row_of(test))]


def named(suite: TestSuite) -> list[Named]:
    """Return what the rows of a suite name. Raise `ConfigError` for a name that stands for nothing."""
    return [(where(row.test), row.topology, row.profile) for test in suite.all_tests if (row := read_row(test))]


def read_row(test: TestCase, resolve: Resolve | None = None) -> Row | None:
    """Return the row of a test, as `row_of` does. Raise `ConfigError`, which names the test, for any mistake in its
    row."""
    try:
        return row_of(test, resolve)
    except (ConfigError, ValidationError, ValueError) as error:
        said = no_topology(error) if isinstance(error, ValidationError) else error
        raise ConfigError(f"{where(test)}: {said}") from None


def where(test: TestCase) -> str:
    """Return the file and the name of a test, for messages."""
    return f"{shown_path(test.source or Path())}: {test.name}"


def no_topology(error: ValidationError) -> str:
    """Return the first mistake in a topology as one sentence."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "extra_forbidden":
        return no_option(str(first["loc"][0]))
    return f"{first['loc'][0]} is {quoted(first['input'])}: {first['msg'].lower()}."


def row_of(test: TestCase, resolve: Resolve | None = None, first: object = None) -> Row | None:
    """Return the row of a test; None where the test is not a row of a promise, or has variables and no `resolve`. Raise
    `ConfigError` for an unknown profile, `ValueError` for an invalid topology. `first`: the step that it begins with;
    else the first one."""
    first = first or next(iter(test.body), None)
    name, arguments = str(getattr(first, "name", "")).lower(), _arguments(first, resolve)
    if arguments is None:
        return None  # known when it runs
    if name == OF_THE_GENERATOR.lower() and len(arguments) == 1:
        profile = load_profile(next_to(test.source, arguments[0]))
        return Row(test, CABLE, profile, PROMISES["connection rate"])
    if name in _CHOOSE:
        return _in_steps(test, arguments if name == _CHOOSE[0] else None, resolve)
    return _made(test, *KEYWORDS[name], arguments) if name in KEYWORDS else None


def _made(test: TestCase, promise: Promise, form: Form, arguments: Sequence[str]) -> Row | None:
    """Return the row with these arguments; None where there are too few."""
    row = arguments_of(form, promise, arguments)
    if row is None:
        return None
    profile = load_profile(next_to(test.source, row["profile"]))
    row["ruleset"] = ruleset_name(test.source, row["ruleset"])
    return Row(test, topology_of(row), profile, promise, promised_in(promise, form, row))


def _arguments(step: object, resolve: Resolve | None) -> list[str] | None:
    """Return the arguments of a keyword; None where they are known only at run time."""
    arguments = [str(argument) for argument in getattr(step, "args", ())]
    if not any(contains_variable(argument, "$@&%") for argument in arguments):
        return arguments
    if resolve is None:
        return None
    found: list[str] = []
    for argument in arguments:
        value = resolve(argument)
        if is_list_variable(argument) and isinstance(value, Sequence):
            found += map(str, value)
        elif is_dict_variable(argument) and isinstance(value, Mapping):
            found += [f"{name}={each}" for name, each in value.items()]
        else:
            found.append(str(value))
    return found


#: What a test begins with that goes by steps.
_CHOOSE = ("use topology", "use cable")


def _in_steps(test: TestCase, chosen: Sequence[str] | None, resolve: Resolve | None) -> Row | None:
    """Return the row of a test that uses a topology, or a cable (None), and measures one promise of it; None for any
    other."""
    measured = [step for step in test.body if str(getattr(step, "name", "")).lower() == "measure"]
    try:
        found = _arguments(measured[0], resolve) if len(measured) == 1 else None
    except RobotError:  # a variable that another step sets
        return None
    name, profile = found if found and len(found) == 2 else ("", "")
    if (promise := PROMISES.get(name.lower())) is None:
        return None
    if chosen is None:
        return Row(test, CABLE, load_profile(next_to(test.source, profile)), promise)
    return _made(test, promise, FORMS[0], [*chosen, *_left_out(chosen), f"profile={profile}"])


def _left_out(arguments: Sequence[str]) -> list[str]:
    """Return the defaults of `Use Topology` for arguments that are missing, as `name=1`."""
    by_place = sum(not is_by_name(each) for each in arguments)
    given = {*ROW[:by_place], *(each.partition("=")[0] for each in arguments if is_by_name(each))}
    return [f"{name}=1" for name in ("cpus", "rx_queues") if name not in given]


#: What opens a testbed in the set-up of a suite, with the names of arguments that it takes by their place.
_OPENS = {"use the testbed": (), "open testbed": ("TESTBED", "CAMPAIGN", "SLA")}


def given_to_open(
    suite: TestSuite | None, resolve: Resolve, opens: Collection[str] = tuple(_OPENS)
) -> dict[str, str] | None:
    """Return what a suite, or the nearest suite around it, names in its set-up to open a testbed, by the names of a
    run's variables; None where a keyword that is not in `opens` opens it, or may do so. `resolve`: replaces variables
    that are not the suite's own."""
    while suite is not None:
        words = [str(suite.setup.name or ""), *map(str, suite.setup.args)] if suite.setup else []
        if words and not hasattr(BuiltIn, words[0].lower().replace(" ", "_")) and words[0].lower() not in _OPENS:
            return None  # a keyword of theirs may open one
        # Of `Run Keywords` and its like the keyword is an argument, and ends at AND.
        at = next((number for number, word in enumerate(words) if word.lower() in _OPENS), None)
        if at is not None:
            name, given = words[at].lower(), words[at + 1 :]
            if name not in opens:
                return None
            if words[0].lower() == "run keywords":
                given = given[: given.index("AND")] if "AND" in given else given if "AND" in words else []
            by_place = dict(zip(_OPENS[name], (each for each in given if not is_by_name(each)), strict=False))
            by_name = (each.partition("=") for each in given if is_by_name(each))
            found = by_place | {variable.upper(): value for variable, _, value in by_name}
            return {variable: _replaced(value, suite, resolve) for variable, value in found.items()}
        suite = suite.parent
    return None


def own_variables(suite: TestSuite) -> Variables:
    """Return the variables of a suite's own file, with those that Robot Framework has in every one."""
    found = Variables()
    found["${/}"], found["${EXECDIR}"] = os.sep, str(Path.cwd())
    found.set_from_variable_section(suite.resource.variables)
    return found


def _replaced(text: str, suite: TestSuite, resolve: Resolve) -> str:
    try:
        return str(own_variables(suite).replace_scalar(text))
    except DataError:
        return str(resolve(text))


def asked_for(tags: Sequence[str], patterns: Sequence[str]) -> frozenset[str]:
    """Return the tags of a test that patterns of `--include` name, alone or in a combination. A tag behind NOT is not
    asked for."""
    wanted = (pattern.partition("NOT")[0] for pattern in patterns)
    words = TagPatterns([word for pattern in wanted for word in re.split("AND|OR|&", pattern) if word])
    return frozenset(tag for tag in tags if words.match([tag]))


def _rows_in(body: Iterable[object], file: ResourceFile, around: Collection[str] = ()) -> int:
    """Return how many rows the steps of a test, or of a keyword of its file, measure. `around`: the keywords of the
    file that these steps are in."""
    found = 0
    for step in body:
        inner = getattr(step, "body", ())
        if isinstance(step, For):
            found += _rows_in(inner, file, around) * _rounds(step)
            continue
        words = [str(word).lower() for word in (getattr(step, "name", ""), *getattr(step, "args", ()))]
        if any(word in _MEASURING for word in words):  # as an argument of `Run Keyword And Continue On Failure`
            found += 1
            continue
        found += _rows_in(inner, file, around)
        for keyword in file.keywords:
            if (name := str(keyword.name).lower()) in words and name not in around:
                found += _rows_in(keyword.body, file, (*around, name))
    return found


def _rounds(loop: For) -> int:
    """Return how often a loop over written values is run; 1 where that is not known."""
    values = [str(value) for value in loop.values]
    if any(contains_variable(value, "$@&%") for value in values):
        return 1
    if loop.flavor == "IN RANGE":
        try:
            return len(range(*map(int, values)))
        except (TypeError, ValueError):  # as it is written it fails when it runs, or counts in fractions
            return 1
    variables = len(loop.assign) - (loop.flavor == "IN ENUMERATE")  # whose first one counts the rounds
    return max(1, len(values) // max(1, int(variables)))


#: What measures a row.
_MEASURING = {*KEYWORDS, OF_THE_GENERATOR.lower(), "measure"}


def all_rows(test: TestCase) -> int:
    """Return how many rows a test has, each of them a step of its own; 0 where loops, conditions or keywords of its
    file may measure more."""
    names = [str(getattr(step, "name", "")).lower() for step in test.body]
    own = {str(keyword.name).lower() for keyword in test.parent.resource.keywords}
    return 0 if "" in names or own & {*names} else sum(name in _MEASURING for name in names)


def gated_rows(
    suite: TestSuite,
    settings_of: Callable[[TestSuite | None], RunSettings],
    place: Callable[[Topology], object],
    include: Sequence[str] = (),
    resolve: Resolve | None = None,
) -> int:
    """Return how many rows of a suite and of the suites in it compare two builds. They share the run's error, so the
    number is needed before the first one begins. `settings_of` returns the settings of a suite, or raises
    `CtbenchError`; `place` raises `MissingResource` for a topology that the testbed has no room for. Unknown cases
    count: a test that determines at run time what it measures, and a suite with a mistake in its files. Of a test with
    several rows each counts, in whatever keyword of its file or loop over written values it is."""

    def of_test(test: TestCase) -> int:
        steps = list(test.body)
        if (count := _rows_in(steps, test.parent.resource)) <= 1:
            return compared(test)
        lines = len(steps) == count and all(str(getattr(step, "name", "")).lower() in KEYWORDS for step in steps)
        return sum(compared(test, step) for step in steps) if lines else count

    def compared(test: TestCase, step: object = None) -> int:
        try:
            row, settings = row_of(test, resolve, step), settings_of(test.parent)
        except (CtbenchError, RobotError, ValueError):  # said when it runs
            return 1
        if row is None:
            return 1
        tags = set(test.tags) - asked_for(tuple(test.tags), include)
        if not settings.compares_builds(row.topology, row.profile, row.promise, row.own, tags):
            return 0
        try:
            place(row.topology)
        except (MissingResource, ConfigError):
            return 0
        return 1

    return sum(map(of_test, suite.all_tests))
