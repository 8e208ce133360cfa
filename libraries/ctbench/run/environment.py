"""What the record says of the testbed: what it says of itself, and what people call the DUT."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from ctbench.dut import registry
from ctbench.dut.topology import Topology
from ctbench.results.environment import DutFacts, Environment, Facts, GeneratorFacts, MachineFacts, TestbedFacts

Model = TypeVar("Model", bound=Facts)


def environment_of(topology: Topology, facts: Mapping[str, Mapping[str, Any]]) -> Environment:
    """The environment of a measurement from `Testbed.facts()`."""
    dut, datapath = facts["dut"], topology.datapath
    named = {
        "product": registry.describe(datapath, dut),
        "product_details": registry.describe(datapath, dut, whole=True),
    }
    return Environment(
        testbed=facts_of(TestbedFacts, facts["testbed"]),
        dut=facts_of(DutFacts, {**dut, **named}),
        generator=facts_of(GeneratorFacts, facts["generator"]),
        machine=facts_of(MachineFacts, facts["machine"]),
    )


def facts_of(model: type[Model], facts: Mapping[str, Any]) -> Model:
    """The facts as a record has them. One of another type than its name says is kept as text, apart from the others: a
    measurement is not thrown away for an odd fact."""
    try:
        return model.model_validate(facts)
    except ValidationError as errors:
        odd = {str(error["loc"][0]) for error in errors.errors() if error["loc"]}
        fitting = {name: value for name, value in facts.items() if name not in odd}
        return model.model_validate(fitting | {"odd_facts": {name: repr(facts[name])[:1000] for name in sorted(odd)}})
