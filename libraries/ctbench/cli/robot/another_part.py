"""Another part of a run that was stopped: `./run sla --resume RUN`."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from robot.conf import RobotSettings
from robot.errors import DataError
from robot.run import RobotFramework

from ctbench.base.errors import ConfigError
from ctbench.cli.robot.selection import selected_suite
from ctbench.cli.robot.whole_run import is_whole, set_aside, write_whole
from ctbench.report import console
from ctbench.results.record import Record, RecordError
from ctbench.results.store import read_whole
from ctbench.run.exit_status import Stamps, record_stamps
from ctbench.run.progress import key, left, own_records, put_aside, require_same_profiles, write_list

#: In the folder of a run that goes on: the tests that are left out.
MEASURED = ".measured.json"
#: The largest return code of Robot Framework that counts failed tests.
ROBOT_MOST_FAILED = 250


class Part:
    """What is left of a run, and how it becomes one with what was before."""

    def __init__(self, folder: Path, arguments: Sequence[str], earlier: Sequence[str], suites: int, here: Path) -> None:
        """`arguments`: of Robot Framework, the last ones of which are as many `suites`; `earlier`: names of records
        that are of another run; `here`: the folder that the user is in. Raises `ConfigError` where the arguments select
        nothing, or a profile is another one now."""
        self.here = here
        self._folder, self._suites = folder, suites
        try:
            self._selected = selected_suite(arguments)
        except DataError as error:
            raise ConfigError(f"--resume: {str(error).rstrip('.')}.\n  Expected the suites of the run.") from None
        self._keys = [(test.parent.full_name, test.name) for test in self._selected.all_tests]
        self._earlier = frozenset(earlier)
        with _writing(folder):
            for each in put_aside(folder, earlier):
                print(f"run: {each}", file=sys.stderr)
        #: Of the parts before this one.
        self.records = [each.record for each in own_records(folder, earlier)]
        require_same_profiles(self.records)
        #: The tests that have none.
        self.left = left(self._keys, self.records)
        gone = sorted({test for suite, test in map(key, self.records) if (suite, test) not in self._keys})
        if gone:
            print(f"run: The suites have no test {', '.join(gone)} any more: its record counts.", file=sys.stderr)
        self._settings = RobotSettings({"outputdir": str(folder)})

    @property
    def before(self) -> Stamps:
        """The records of another run in this folder."""
        return {
            path: stamp for path, stamp in record_stamps(self._folder / "records").items() if path.name in self._earlier
        }

    @property
    def sentence(self) -> str:
        """How far the run got."""
        total, missing = len(self._keys), len(self.left)
        what = f"measuring {missing}" if missing else "nothing is left to measure"
        return f"{total - missing} of {total} tests have a record; {what}."

    def begin(self, arguments: Sequence[str]) -> list[str]:
        """Make way for the output of this part; returns its `arguments` with what leaves out the other tests."""
        self._settings = RobotSettings(RobotFramework().parse_arguments(list(arguments))[0])
        if not self.left:
            return list(arguments)
        uppermost, listed = self._selected.full_name, self._folder / MEASURED
        with _writing(self._folder):
            set_aside(self._folder, self._settings)
            write_list(map(key, self.records), uppermost, listed)
        options, suites = arguments[: -self._suites], arguments[-self._suites :]
        # The last one: those of the user may give tests the names that they have in their records.
        return [*options, "--prerunmodifier", f"ConntrackSLA.leave_out.LeaveOut;{listed}", *suites]

    def end(self, status: int) -> int:
        """Put the parts together; returns Robot Framework's return code for the whole, and its `status` for this part
        where that says that something went wrong."""
        (self._folder / MEASURED).unlink(missing_ok=True)
        stored = own_records(self._folder, self._earlier)
        records = [each.record for each in stored]
        try:
            found = self._put_together(records)
        except (OSError, DataError) as error:
            print(f"run: Robot Framework's output of the whole run could not be written ({error}).", file=sys.stderr)
            found = None
        with suppress(OSError, RecordError):  # they were read just now
            print(f"\nThe whole run:\n\n{console.summary([read_whole(each.path) for each in stored])}")
        return status if found is None or status > ROBOT_MOST_FAILED else found

    def _put_together(self, records: Sequence[Record]) -> int | None:
        if not self.left:
            found = is_whole(self._settings, self._keys)
            if found is not None:
                return found
            set_aside(self._folder, self._settings)
        return write_whole(self._folder, self._settings, self._selected, records)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """A folder that cannot be written is one sentence."""
    try:
        yield
    except OSError as error:
        raise ConfigError(
            f"--resume: {folder} cannot be written ({error.strerror}).\n  Expected a folder of your own, on a disk "
            "with space left."
        ) from None
