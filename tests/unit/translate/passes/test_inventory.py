from __future__ import annotations

from tests.unit.translate.helpers.rules import program
from translate.ir import AnyOf, Drop, Field, FieldTest, Limit, Queue, Return
from translate.passes.inventory import Inventory

RULES = (
    "-A INPUT -s 10.0.0.1/32 -j RETURN",
    "-A INPUT -m conntrack ! --ctstate RELATED,DNAT -j DROP",
    "-A INPUT -m limit --limit 1/sec -j DROP",
)


def test_kinds_of_tests_actions_and_fields() -> None:
    inventory = Inventory.of(program("filter", *RULES))
    assert inventory.tests == {FieldTest, AnyOf, Limit}
    assert inventory.actions == {Return, Drop}
    assert inventory.fields == {Field.SADDR, Field.CT_STATE, Field.CT_STATUS}


def test_rules_are_found_by_what_they_test_and_do() -> None:
    inventory = Inventory.of(program("filter", *RULES))
    assert [origin.text for _, origin in inventory.tests_of_type(Limit)] == [RULES[2]]
    assert [origin.text for origin in inventory.testing({Field.CT_STATUS})] == [RULES[1]]
    assert [origin.text for origin in inventory.doing(Drop)] == list(RULES[1:])
    assert not list(inventory.doing(Queue))
    assert not list(inventory.testing({Field.MARK}))
