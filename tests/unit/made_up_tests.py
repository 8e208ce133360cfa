"""A keyword library for the tests of `./run sla --resume`: leaves made-up records, and stops a run like Ctrl-C does."""

from pathlib import Path

from robot.api import FatalError
from robot.libraries.BuiltIn import BuiltIn
from unit.simulated import found, made_up_record

from ctbench.results import store
from ctbench.traffic.profiles import load_profile


def measure(verdict: str = "met") -> None:
    """What the real one does, without a DUT."""
    variables = BuiltIn().get_variables()
    suite, test = variables["${SUITE NAME}"], variables["${TEST NAME}"]
    made = made_up_record(
        found(50e3), run_id=variables["${RUN_ID}"], suite=suite, test=test, profile=load_profile("short-lived")
    )
    output = Path(variables["${OUTPUT DIR}"])
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
