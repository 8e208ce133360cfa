"""A keyword library for the tests of runs that go on: leaves made-up records, and stops a run like Ctrl-C does."""

from pathlib import Path

from robot.api import FatalError, SkipExecution
from robot.libraries.BuiltIn import BuiltIn
from unit.simulated import found, made_up_record

from ctbench.results import store
from ctbench.traffic.profiles import load_profile


def measure(verdict: str = "met") -> None:
    """What the real one does, without a DUT."""
    variables = BuiltIn().get_variables()
    suite, test, output = variables["${SUITE NAME}"], variables["${TEST NAME}"], Path(variables["${OUTPUT DIR}"])
    for each in store.read_stored(output)[0]:
        record = each.record
        if (record.suite, record.test, record.run_id) == (suite, test, variables["${RUN_ID}"]):
            raise SkipExecution(f"{record.verdict.capitalize()}: its record counts.")
    made = made_up_record(
        found(50e3), run_id=variables["${RUN_ID}"], suite=suite, test=test, profile=load_profile("short-lived")
    )
    store.write(made.model_copy(update={"verdict": verdict}), output)
    with (output / "measured").open("a") as file:
        file.write(f"{suite}.{test}\n")
    BuiltIn().set_test_metadata("Verdict", verdict)
    if verdict != "met":
        raise AssertionError(verdict.capitalize())


def stop_the_first_time() -> None:
    """Ends the run unless it was ended here before."""
    stopped = Path(BuiltIn().get_variable_value("${OUTPUT DIR}"), "stopped")
    if not stopped.exists():
        stopped.touch()
        raise FatalError("stopped")
