"""Rules around a sample, and the flows for labels and sets that the generated ones do not have."""

from __future__ import annotations

import pytest

from backends.model.flow import Reply, Send
from backends.model.node import Address, Interface, Node
from tests.lab.mutation.extension_context import CONTEXT_LINE, surrounded
from tests.lab.mutation.plain_flows import label_flows, zero_flows
from translate.ir import Family, Protocol, Rule, SetDirection, SetUpdate
from translate.read import read_ruleset

NODE = Node(
    (
        Interface("west0", (Address(Family.IP, 0x0A010001, 16),)),
        Interface("east0", (Address(Family.IP, 0x0A020001, 16),)),
    )
)


def rule(text: str, family: Family = Family.IP) -> Rule:
    return next(read_ruleset(f"*mangle\n{text}\nCOMMIT\n".encode(), name="rules", family=family).rules())


@pytest.mark.parametrize(("family", "behind"), [(Family.IP, 0), (Family.IP6, 1)])
def test_flow_labels_are_looked_at_only_in_ipv6(family: Family, behind: int) -> None:
    sample = rule("-A FORWARD -j TOS --set-tos 0x10", family)
    rules = surrounded(sample, family)
    assert rules[0] == sample
    assert [each.origin.line for each in rules[1:]] == [CONTEXT_LINE] * behind


def test_a_set_is_filled_for_a_rule_that_deletes_and_looked_up_behind_it() -> None:
    sample = rule("-A FORWARD -j SET --del-set hosts dst")
    (before, *_), middle, (*_, behind) = (part for part in [surrounded(sample, Family.IP)] * 3)
    change = SetUpdate(name="hosts", directions=(SetDirection.DST,))
    assert change in before.tests
    assert sample in middle
    assert [spelled.name for spelled in behind.matches] == ["set"]


def test_flows_for_labels_begin_where_forward_does_not_see_them() -> None:
    answered, error = label_flows(NODE, Family.IP)
    assert answered.first.entry is None
    assert isinstance(answered.steps[1], Reply)
    sent, quoting = error.steps
    assert isinstance(sent, Send)
    assert isinstance(quoting, Send)
    assert sent.packet.dst == 0x0A010001
    assert quoting.packet.quoted == sent.packet


def test_packets_from_and_to_zero_are_datagrams_first() -> None:
    flows = list(zero_flows(NODE))
    protocols = [[step.packet.proto for step in flow.steps if isinstance(step, Send)] for flow in flows]
    assert protocols == [[Protocol.UDP, Protocol.TCP], [Protocol.TCP]] * 5
    assert {(flow.first.packet.src, flow.first.packet.dst) for flow in flows} >= {(0, 0), (0, 0xFFFFFFFF)}
