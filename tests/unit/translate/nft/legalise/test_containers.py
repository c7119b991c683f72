from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate.ir import Dnat, Field, Goto, Jump, Protocol
from translate.nft.legal import AnyProtocol, DnatTarget, DnatTo, InSet, LegalMap, LegalRule, VerdictOf
from translate.nft.legalise import legalise
from translate.nft.legalise.headers import protocol_among

DNAT = "-A PREROUTING -p tcp -m tcp --dport {} -j DNAT --to-destination {}"


def only(table: str, *rules: str) -> tuple[LegalMap, LegalRule]:
    """The one container of a table at level 1, and the rule that asks it."""
    legal = legalise(program(table, *rules, level=1))
    (container,) = legal.maps
    (rule,) = (
        rule
        for chain in legal.chains
        for rule in chain.rules
        if any(isinstance(part, InSet | DnatTo | VerdictOf) for part in rule.parts)
    )
    return container, rule


def test_entries_that_do_the_same_are_a_set() -> None:
    container, rule = only("filter", *(f"-A FORWARD -s 10.0.0.{n}/32 -j DROP" for n in (1, 2)))
    assert container.data is None
    assert rule.parts[0] == InSet(container.name, container.key)


def test_entries_that_differ_in_their_target_are_a_map_of_targets() -> None:
    container, rule = only("nat", DNAT.format(80, "10.0.0.1:81"), DNAT.format(90, "10.0.0.2:91"))
    assert container.data == DnatTarget(ported=True)
    assert all(isinstance(element.data, Dnat) for element in container.elements)
    assert isinstance(rule.parts[-1], DnatTo)


@pytest.mark.parametrize(("second", "kind"), [("-j LOG", Jump), ("-g other", Goto)])
def test_other_entries_are_a_verdict_map(second: str, kind: type) -> None:
    container, rule = only(
        "filter",
        "-A FORWARD -s 10.0.0.1/32 -j DROP",
        f"-A FORWARD -s 10.0.0.2/32 {second}",
        "-A other -p udp -j ACCEPT",
    )
    assert container.data == "verdict"
    assert isinstance(rule.parts[-1], VerdictOf)
    assert isinstance(container.elements[1].data, kind)
    assert rule.calls


def test_the_protocol_of_the_key_stands_before_a_port_of_the_connection() -> None:
    rule = "-A FORWARD -p icmp -m conntrack --ctorigdstport 53 -m icmp --icmp-type {} -j DROP"
    container, asks = only("filter", rule.format(8), rule.format(0))
    assert container.key == (Field.ICMP_TYPE,)
    assert asks.parts[0] == protocol_among((Protocol.ICMP,))
    assert not any(isinstance(part, AnyProtocol) for part in asks.parts)
