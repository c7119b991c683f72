"""Short ways to read one rule, and to get at the first diagnostic."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate.errors import Diagnostic, ParseError
from translate.ir import TABLE_HOOKS, Family, Rule, Ruleset, TableName
from translate.read import read_ruleset

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]


def text_of(rule: str, table: TableName) -> str:
    hooks = "".join(f":{hook} ACCEPT [0:0]\n" for hook in TABLE_HOOKS[table])
    return f"*{table}\n{hooks}:mine - [0:0]\n:other - [0:0]\n-A mine {rule}\nCOMMIT\n"


def rules_of(rule: str, *, table: str = "filter", family: Family = Family.IP) -> Ruleset:
    return read_ruleset(text_of(rule, TableName(table)).encode(), name="rules", family=family)


@pytest.fixture
def read_rule() -> ReadRule:
    """``read_rule("-s 10.0.0.1", table=…, family=…)``: the rule, which stands in a user chain."""

    def read(rule: str, *, table: str = "filter", family: Family = Family.IP) -> Rule:
        chain = rules_of(rule, table=table, family=family).tables[0].chain("mine")
        assert chain is not None
        (rule_read,) = chain.rules
        return rule_read

    return read


@pytest.fixture
def read_fault() -> ReadFault:
    """``read_fault("-s x")``: the one diagnostic; its column counts from the rule's first word."""

    def read(rule: str, *, table: str = "filter", family: Family = Family.IP) -> Diagnostic:
        with pytest.raises(ParseError) as caught:
            rules_of(rule, table=table, family=family)
        (fault,) = caught.value.diagnostics
        lead = len("-A mine ")
        assert fault.origin.text == f"-A mine {rule}"
        return Diagnostic(fault.origin.at(fault.origin.column - lead), fault.message, fault.hint)

    return read
