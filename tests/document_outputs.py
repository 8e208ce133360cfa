"""The form of what `./run sla` shows, with any figures in it: the same rules for the documents and for a real run.

A document may leave lines out, which `...` stands for."""

import re

_COUNT = r"\d[\d.]*( [kMG])?"
#: One, or those of connections and of packets.
_RATE = rf"{_COUNT}( CPS| pps| connections)?(, {_COUNT} pps)?"
_SHARE = r"\d[\d.]* %"
_INTERVAL = rf"(± {_SHARE}|\(\d[\d.]* to {_SHARE}\))"
#: With what it is made of.
_RATIO = rf"{_SHARE}( \({_COUNT} of {_COUNT} (CPS|pps|instructions)\))?"
_TIME = r"\d[\d.]* (us|ms|s)"
_CELLS = (
    r".+",
    rf"{_RATE}|(at most )?{_SHARE}|at most {_TIME}",
    rf"(at least )?{_RATE}|{_RATIO}|{_TIME}|-",
    r"MET|MISSED|NOT MEASURED",
)
_EFFORT = re.compile(
    r"\d+ trials( \(\d+ for ceilings and comparisons\))?: \d+ s of traffic, \d+ s of ramp-up, "
    r"and \d+ s for flushes and checks "
    r"\(\d+\.\d\d s a trial\); the tests took \d+ s"
)
_COUNTS = re.compile(r"\d+ (met|missed|not measured)(, \d+ (missed|not measured))*")
#: Title of the column with the TCP connect time.
_CONNECT_TIME = "connect p99"
_TRIAL_CELLS = {
    "trial": r"\d+", "offered": r"\d[\d.]*( [kM])?/s", "completed": r"\d[\d.]*( [kM])?/s", "loss": r"<?\d[\d.]* %",
    "packets/s": r"\d[\d.]*( [kMG])?", _CONNECT_TIME: r"\d[\d.]* (us|ms|s)|-", "verdict": r"good|bad|invalid",
    "left": r"(~\d+ s)?",
}  # fmt: skip
_LOOK = re.compile(
    rf"  look \d  \d+ rounds +ratio {_SHARE} {_INTERVAL} +(at least \d[\d.]* % +)?(decided|goes on) *(at most ~\d+ s)?"
)
_RESULT = re.compile(
    rf"  (capacity|floor tried:|ratio|[a-z ]+) ((at least )?{_RATE}( ± {_SHARE})?|{_RATIO}|{_TIME}( ± {_SHARE})?)   "
    rf"floor ({_RATE}|{_SHARE}|at most {_TIME})"
    r"( \(smoke test\))?   margin \S+ %   (MET|MISSED)"
)
_HEADING = re.compile(r"\S.{49,}  \S+/\S+/\d+cpu-\d+rxq  \d\S*")


def table(text: str) -> list[str]:
    """The fixed lines of the table of verdicts, after every other line of it was found to be of its form."""
    lines = text.splitlines()
    begin = next(number for number, line in enumerate(lines) if re.match("test +minimum +measured", line))
    rule = lines[begin + 1]
    end = begin + 2 + lines[begin + 2 :].index(rule)
    for line in lines[begin + 2 : end]:
        if line.startswith("  ") and not line.startswith("    "):  # neither a suite nor a reason
            cells = re.split(" {2,}", line.strip())
            assert line.index(cells[-1], len(cells[0])) == lines[begin].index("verdict"), line
            for cell, form in zip(cells, _CELLS, strict=True):
                assert re.fullmatch(form, cell), (cell, line)
    rest = lines[end + 1 : end + 4]
    counts = next(number for number, line in enumerate(rest) if _COUNTS.fullmatch(line))
    assert rest[:counts] == ["..."] or _EFFORT.fullmatch(" ".join(rest[:counts])), rest
    return [*lines[begin].split(), rule]


def trials(text: str) -> list[str]:
    """The fixed lines of the trials of one test, likewise."""
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines) if line.startswith("  trial ") and _CONNECT_TIME in line)
    assert _HEADING.fullmatch(lines[head - 1]), lines[head - 1]
    starts = {name: lines[head].index(name) for name in _TRIAL_CELLS}
    edges = [*starts.values(), None]
    end = next(
        number
        for number, line in enumerate(lines)
        if number > head and re.match(r"  [a-z]", line) and not line.startswith("  look ")
    )
    for line in lines[head + 1 : end]:
        if line.startswith(" " * 10) or _LOOK.fullmatch(line):  # why a trial was invalid
            continue
        for (name, form), start, stop in zip(_TRIAL_CELLS.items(), edges, edges[1:], strict=False):
            assert re.fullmatch(form, line[start:stop].strip()), (name, line)
    assert _RESULT.fullmatch(lines[end]), lines[end]
    return [lines[head]]


FORMS = {"table": table, "trials": trials}
