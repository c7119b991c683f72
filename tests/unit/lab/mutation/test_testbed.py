"""The order in which flows are asked about a fault."""

from __future__ import annotations

from backends.simulator import SimulatorBackend
from tests.lab.mutation.planter import NftPlanter
from tests.lab.mutation.rulesets import batches_of
from tests.lab.mutation.testbed import parts
from tests.lab.mutation.workload import prepare
from tests.unit.translate.helpers.rules import program


def test_parts_are_all_and_each_once() -> None:
    found = list(parts(range(300)))
    assert [len(one) for one in found] == [64, 64, 128, 44]
    assert [n for one in found for n in one] == list(range(300))


def test_few_flows_are_one_part() -> None:
    assert list(parts(range(5))) == [range(5)]
    assert list(parts(range(0))) == []


def test_every_flow_is_repeated_once_before_one_is_a_second_time() -> None:
    (workload, *_) = prepare(batches_of("kind")[1:], SimulatorBackend(), few=3, many=5)
    later = workload.flows[len(workload.batch.flows) :]
    firsts = [flow.id for flow in later if flow.id not in workload.repeats]
    assert [flow.id for flow in later[: len(firsts)]] == firsts
    second = [workload.repeats[flow.id] for flow in later[len(firsts) : 2 * len(firsts)]]
    assert sorted(second) == sorted(firsts)
    assert second != firsts  # another order, so that a counter does not give a flow the same share in all
    flows = {f"{flow.id}:first": flow.first for flow in workload.batch.flows}
    assert [flow.first for flow in later[: len(firsts)]] == [flows[name] for name in firsts]


def test_a_fault_with_which_conntrack_ends_needs_a_new_node() -> None:
    planter = NftPlanter(program("mangle", "-A FORWARD -m conntrack --ctstate NEW -j DROP"))
    text = planter.text
    assert planter.change(text, text.replace("ct state new ", "")) is None
    assert planter.change(text.replace("ct state new ", ""), text) is None
    invalid = text.replace("ct state new ", "ct state invalid ")
    assert planter.change(text, invalid) == invalid
