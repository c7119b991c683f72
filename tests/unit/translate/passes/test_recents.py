from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program, statements
from translate.ir import Recent
from translate.passes.inventory import Inventory
from translate.passes.recents import inexact, recent_lists


@pytest.mark.parametrize(
    ("rules", "shows"),
    [
        (("--rcheck --seconds 5 --reap",), False),
        (("--rcheck --seconds 5 --reap", "--update --seconds 5"), False),
        (("--rcheck --seconds 5 --reap", "--rcheck --seconds 6"), True),
        (("--rcheck --seconds 5 --reap", "--rcheck"), True),
        (("--rcheck --seconds 5 --reap", "--remove"), True),
        (("--rcheck --seconds 5 --reap", "! --update --seconds 5"), True),
        (("--rcheck --seconds 5", "--remove"), False),
    ],
)
def test_when_reaping_shows(rules: tuple[str, ...], shows: bool) -> None:
    lowered = program("filter", *(f"-A INPUT -m recent --name a {rule}" for rule in rules))
    known = recent_lists(Inventory.of(lowered))["a"]
    assert known.reaping_shows is shows
    first = statements(lowered, "filter/INPUT")[0].tests[0]
    assert isinstance(first, Recent)
    assert (inexact(first, known) is not None) is shows


def test_a_list_is_placed_at_the_first_rule_that_fills_it() -> None:
    rules = ("-A INPUT -m recent --rcheck --name a", "-A INPUT -m recent --set --name a")
    known = recent_lists(Inventory.of(program("filter", *rules)))["a"]
    assert known.origin.text == rules[1]
    assert known.limited
