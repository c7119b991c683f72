from __future__ import annotations

import re

import pytest

from tests.unit.translate.helpers.rules import program
from translate.nft import ChangeKind, emit
from translate.passes.templatenames import list_name


def services(*numbers: int, endpoints: int = 2) -> list[str]:
    """Rules that dispatch to services, each of which spreads over endpoints."""
    rules = []
    for n in numbers:
        rules.append(f"-A PREROUTING -d 10.96.0.{n}/32 -p tcp -m tcp --dport 80 -j s{n}")
        for e in range(endpoints):
            left = endpoints - e
            draw = f" -m statistic --mode random --probability {1 / left:.11f}" if left > 1 else ""
            rules.append(f"-A s{n}{draw} -j e{n}-{e}")
            rules.append(f"-A e{n}-{e} -p tcp -j DNAT --to-destination 10.244.{n}.{e + 1}:8080")
    return rules


def chains(*rules: str) -> list[str]:
    text = emit(program("nat", *rules, level=2)).text
    return re.findall(r"\tchain (nat_PREROUTING_\S+)", text)


@pytest.mark.parametrize("count", [2, 3])
def test_a_name_says_who_dispatches_what_is_done_and_the_number_of_endpoints(count: int) -> None:
    names = chains(*services(1, 2, endpoints=count))
    assert [re.sub("_[0-9a-f]{4}$", "", name) for name in names] == [
        f"nat_PREROUTING_{count}_endpoints",
        *(f"nat_PREROUTING_endpoint_{n + 1}" for n in range(count)),
    ]


def test_names_stay_when_lines_move_and_other_services_come() -> None:
    before = services(1, 2)
    moved = ["-A PREROUTING -i lo -j ACCEPT", *before]
    assert chains(*moved) == chains(*before)
    more = services(1, 2, 3)
    assert chains(*more) == chains(*before)
    assert set(chains(*before, *services(4, 5, endpoints=3))) > set(chains(*before))


def test_a_service_that_comes_is_a_change_of_elements() -> None:
    few, more = (emit(program("nat", *services(*n), level=2)) for n in ((1, 2), (1, 2, 3)))
    assert more.change_from(few).kind is ChangeKind.ELEMENTS


def test_rules_of_several_services_name_none_of_them() -> None:
    rules = [
        f"{rule.partition(' -j ')[0]} -m comment --comment of-{number} -j {rule.partition(' -j ')[2]}"
        for number in (1, 2)
        for rule in services(number)
    ]
    lines = emit(program("nat", *rules, level=2)).text.splitlines()
    asks = [line for line in lines if "numgen" in line and "vmap" in line]
    assert all("rules like line" in line and "of-" not in line for line in asks)
    assert asks
    assert any(re.search(r'10\.96\.0\.2 .*comment "of-2, line \d+" : ', line) for line in lines)


def test_lists_of_one_dispatcher_are_told_apart() -> None:
    names = {list_name("nat/A", number, profile) for number in (0, 1) for profile in (("a",), ("b",))}
    assert len(names) == 4
    assert all(name.startswith("A list ") for name in names)
