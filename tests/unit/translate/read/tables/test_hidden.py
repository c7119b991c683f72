from __future__ import annotations

from translate.ir import Chain, Hook, Jump, Origin, Rule, TableName
from translate.read.tables.hidden import add_hidden


def test_chains_that_are_not_in_the_input_have_unknown_rules() -> None:
    origin = Origin("rules", 3)
    rule = Rule(tests=(), actions=(Jump("a"),), origin=origin)
    chains = {"INPUT": Chain(name="INPUT", rules=(rule,), hook=Hook.INPUT, origin=Origin("rules", 1))}
    add_hidden(chains, TableName.FILTER)
    assert list(chains) == ["INPUT", "FORWARD", "OUTPUT", "a"]
    assert chains["INPUT"].rules == (rule,)
    assert (chains["OUTPUT"].hook, chains["a"].hook, chains["a"].origin) == (Hook.OUTPUT, None, origin)
    for name in ("FORWARD", "OUTPUT", "a"):
        (hidden,) = chains[name].rules
        assert [unknown.reason for unknown in hidden.unknown] == [f"chain {name} is not shown"]
