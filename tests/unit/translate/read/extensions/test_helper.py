"""``-m helper``: the names that the kernel takes for the same, and connections that no helper expected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from translate import nft
from translate.ir import AnyOf, Family, Field, FieldTest, Name, Rule
from translate.passes import lower
from translate.read import read_ruleset


def of(*names: Name) -> FieldTest:
    return FieldTest(field=Field.CT_HELPER, values=names)


SIP = of(Name("s"), Name("si"), Name("sip"))


def test_a_helper_is_known_by_the_start_of_the_name(read_rule: Callable[..., Rule]) -> None:
    assert read_rule("-m helper --helper sip").tests == (SIP,)


def test_negated_it_holds_without_a_helper(read_rule: Callable[..., Rule]) -> None:
    assert read_rule("-m helper ! --helper sip").tests == (AnyOf(tests=(SIP,), negated=True),)


def test_no_name_is_any_helper(read_rule: Callable[..., Rule]) -> None:
    assert read_rule('-m helper --helper ""').tests == (of(Name("", wildcard=True)),)


def test_long_names_are_cut(read_rule: Callable[..., Rule]) -> None:
    long, cut = (read_rule(f"-m helper --helper {'a' * length}") for length in (40, 29))
    assert long.tests == cut.tests


@pytest.mark.parametrize("level", [0, 1, 2])
def test_in_nftables_a_missing_helper_is_no_other_helper(level: int) -> None:
    text = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -m helper ! --helper sip -j DROP\nCOMMIT\n"
    program = lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=level)
    made = nft.emit(program).text
    assert 'ct helper { "s", "si", "sip" }' in made
    assert "ct helper !=" not in made
