"""What is judged, and what the generator's ceiling and another machine make of it."""

from dataclasses import dataclass

from ctbench.measure.procedure import Decision, Outcome
from ctbench.results.environment import MachineFacts
from ctbench.results.metrics import COSTS, METRICS, SATURATION_OF
from ctbench.results.promised import ThresholdRecord
from ctbench.sla.floor import Floor

#: A result below the floor that reaches this share of the generator's ceiling says nothing about the DUT.
NEAR_CEILING = 0.9


@dataclass(frozen=True)
class Case:
    """What is judged: a result, the floor, the generator's ceiling, and the DUT's machine."""

    outcome: Outcome
    floor: Floor
    ceiling: float | None
    machine: MachineFacts | None
    #: Of an emulated machine: what it booted.
    image: str = ""

    @property
    def promise(self) -> str:
        """The rate that is promised, in words."""
        return self.floor.metric.format(self.floor.main.limit) if self.floor.main else ""

    @property
    def result(self) -> float:
        """What was found."""
        return self.outcome.result.value if self.outcome.result else 0.0

    def show(self, value: float) -> str:
        """A value of what the test looked for, in words."""
        return self.outcome.metric.format(value)

    @property
    def own_limit(self) -> float | None:
        """The rate at which the DUT itself was seen to end, well below what the generator can do; None where it was
        not seen."""
        found = self.outcome.figures.get(SATURATION_OF[self.floor.profile.kind].name)
        limit = self.result if self.outcome.limited_by == "dut" else found.value if found else None
        return limit if limit is not None and self.ceiling and limit < NEAR_CEILING * self.ceiling else None


def differs(case: Case, each: ThresholdRecord) -> bool:
    """Whether a figure was promised of another machine, or of another image, than this one."""
    if each.metric in COSTS:
        return case.floor.image != case.image
    machine = case.floor.machine
    return bool(each.bound_to and machine and machine.differs_from(case.machine))


def of_another_image(case: Case, each: ThresholdRecord) -> str:
    """Why a count is not judged here: it was promised of another image. Empty where it was not."""
    if not each.elsewhere or each.metric not in COSTS:
        return ""
    found = f"; this one found {METRICS[each.metric].format(each.measured)}" if each.measured is not None else ""
    limit = METRICS[each.metric].format(each.limit)
    return f"this floor ({limit}) was made with {each.bound_to}, and this is image {case.image or 'unknown'}{found}"


def elsewhere(case: Case, each: ThresholdRecord) -> str:
    """Why a rate that is missed says nothing here: it was promised of another machine. Empty where it was not."""
    if not each.elsewhere or case.floor.machine is None:
        return ""
    differs = case.floor.machine.differs_from(case.machine)
    metric = METRICS[each.metric]
    found = f", and reaches {metric.format(each.measured)}" if each.measured is not None else ""
    return f"this floor ({metric.format(each.limit)}) was made on {each.bound_to}; {differs}{found}"


def excuse_of(case: Case, is_promise: bool) -> str:
    """Why a threshold that its figure does not keep says nothing about the DUT; empty when it does."""
    ceiling = case.ceiling
    promise = f" of {case.promise}" if case.promise else ""
    if case.outcome.limited_by == "generator":
        return f"the traffic generator was the limit below the floor{promise}: {as_part(case.outcome.reason)}"
    if near := near_ceiling(case):
        return near
    if _is_above(case, ceiling) and case.own_limit is None and is_promise:
        return f"the traffic generator reaches only {case.show(ceiling or 0.0)}, the floor is {case.promise}"
    if case.outcome.limited_by == "range":
        return (
            f"the campaign's range ended at {case.show(case.result)}, where the floor{promise} was not reached yet: "
            "raise loads.max in the campaign"
        )
    return ""


def near_ceiling(case: Case) -> str:
    """Why a result below the floor may be the generator's; empty where it is well below what that can do."""
    if case.ceiling is None or case.result < NEAR_CEILING * case.ceiling:
        return ""
    promise = f" of {case.promise}" if case.promise else ""
    return (
        f"{case.show(case.result)} is within 10 % of what the traffic generator can do ({case.show(case.ceiling)}), "
        f"and below the floor{promise}"
    )


def _is_above(case: Case, ceiling: float | None) -> bool:
    """Whether the floor is more than the generator can offer."""
    return ceiling is not None and case.floor.load(0.0) > ceiling


def beyond(case: Case, each: ThresholdRecord) -> Decision | None:
    """Of a floor that the generator cannot offer, so that no trial could be made at it: missed all the same where the
    DUT's own limit was seen below what the generator can do."""
    if not _is_above(case, case.ceiling) or case.own_limit is None or case.ceiling is None:
        return None
    return Decision(
        kept=False,
        reason=f"the DUT itself ends at {case.show(case.own_limit)}, where the traffic generator reaches "
        f"{case.show(case.ceiling)}: the floor of {METRICS[each.metric].format(each.limit)} is beyond both",
    )


def as_part(text: str) -> str:
    """A sentence as a part of another one."""
    return text.rstrip(".")
