"""Addresses of lists as elements of sets, and back."""

from __future__ import annotations

import json
import re

import pytest

from nfparity.migrate.elements import additions, read_contents, replacements, returning
from nfparity.migrate.recentfiles import Jiffies, ListedAddress
from translate.errors import MachineError
from translate.nft import NftList, NftRing, emit
from translate.passes import lower
from translate.read import read_ruleset

CLOCK = Jiffies(now=100_000, per_second=100)
PLAIN = NftList(name="BAN", key=(), sets=(("ban", 60), ("present", None)), rings=(), size=100)
KEYED = NftList(name="SEP", key=("10.96.0.1", "udp", "53"), sets=(("seps", 60),), rings=(), size=100)
RING = NftList(
    name="HITS", key=(), sets=(), rings=(NftRing(("t1", "t2", "t3"), ("n1", "n2", "n3"), 60),), size=100
)


def aged(address: str, *seconds: float) -> ListedAddress:
    return ListedAddress(address, tuple(CLOCK.now - int(age * CLOCK.per_second) for age in seconds))


def elements(one: NftList, *clients: ListedAddress) -> dict[str, str]:
    text = additions("ip", (one,), {one.name: clients}, CLOCK)
    return dict(re.findall(r"^add element ip nfparity (\S+) \{ (.*) \}$", text, re.MULTILINE))


def test_a_set_has_the_time_that_is_left() -> None:
    assert elements(PLAIN, aged("10.0.0.1", 50, 10.5), aged("10.0.0.2", 70)) == {
        "ban": "10.0.0.1 expires 49s500ms",
        "present": "10.0.0.1, 10.0.0.2",  # however old
    }


def test_a_key_follows_the_address() -> None:
    made = elements(KEYED, aged("10.0.0.1", 0), aged("10.0.0.2", 59.99))
    assert made == {
        "seps": "10.0.0.1 . 10.96.0.1 . udp . 53 expires 60s0ms, "
        "10.0.0.2 . 10.96.0.1 . udp . 53 expires 0s10ms"
    }


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ((5,), {"t1": 55, "n2": 55}),
        ((5, 7), {"t1": 53, "t2": 55, "n3": 55}),
        ((5, 7, 9), {"t1": 51, "t2": 53, "t3": 55, "n1": 55}),
        ((5, 7, 9, 11), {"t1": 51, "t2": 53, "t3": 55, "n1": 55}),
        ((5, 7, 70), {"t1": 53, "t2": 55, "n3": 55}),
        ((60, 70), {}),
    ],
)
def test_a_ring_has_the_last_packets_in_turn(ages: tuple[int, ...], expected: dict[str, int]) -> None:
    made = elements(RING, aged("10.0.0.1", *reversed(ages)))
    assert made == {name: f"10.0.0.1 expires {left}s0ms" for name, left in expected.items()}


def test_a_set_that_is_too_small_gets_the_youngest() -> None:
    small = NftList(name="BAN", key=(), sets=(("ban", 60),), rings=(), size=2)
    made = elements(small, *(aged(f"10.0.0.{n}", n) for n in (4, 1, 3, 2)))
    assert made == {"ban": "10.0.0.1 expires 59s0ms, 10.0.0.2 expires 58s0ms"}


def test_what_has_changed_replaces_elements() -> None:
    text = replacements("ip", (PLAIN,), {"BAN": (aged("10.0.0.1", 1), ListedAddress("10.0.0.2", ()))}, CLOCK)
    assert text.split("\n") == [
        "add element ip nfparity ban { 10.0.0.1, 10.0.0.2 }",
        "add element ip nfparity present { 10.0.0.1, 10.0.0.2 }",
        "delete element ip nfparity ban { 10.0.0.1, 10.0.0.2 }",
        "delete element ip nfparity present { 10.0.0.1, 10.0.0.2 }",
        "add element ip nfparity ban { 10.0.0.1 expires 59s0ms }",
        "add element ip nfparity present { 10.0.0.1 }",
        "",
    ]


def listing(**sets: list[object]) -> str:
    return json.dumps({"nftables": [{"set": {"name": name, "elem": elem}} for name, elem in sets.items()]})


def element(value: object, left: int) -> object:
    return {"elem": {"val": value, "expires": left}}


def test_the_way_back_is_in_the_order_of_age() -> None:
    contents = read_contents(
        listing(
            ban=[element("10.0.0.1", 10), element("10.0.0.2", 50)],
            present=["10.0.0.3", "10.0.0.1"],
            seps=[element({"concat": ["10.0.0.7", "10.96.0.1", "udp", 53]}, 9)],
            t1=[element("10.0.0.4", 20), element("10.0.0.5", 30)],
            t2=[element("10.0.0.4", 25)],
        )
    )
    assert returning(PLAIN, contents) == (("10.0.0.3", 1), ("10.0.0.1", 1), ("10.0.0.2", 1))
    assert returning(KEYED, contents) == (("10.0.0.7", 1),)
    assert returning(RING, contents) == (("10.0.0.4", 2), ("10.0.0.5", 1))


@pytest.mark.parametrize("text", ["", "[]", '{"nftables": [{"set": {}}]}'])
def test_something_else_than_a_listing(text: str) -> None:
    with pytest.raises(MachineError, match="is not a table"):
        read_contents(text)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_translation_shows_where_each_list_is(level: int) -> None:
    check, note = "-m recent --rcheck --seconds 9 --name", "-m recent --set --name"
    rules = "".join(
        f"-A s{n} {check} list{n}{e} --mask 255.255.255.255 --rsource -j e{n}{e}\n"
        f"-A e{n}{e} -p tcp {note} list{n}{e} --mask 255.255.255.255 --rsource -j DNAT --to 10.0.{n}.{e}:80\n"
        for n in (1, 2)
        for e in (1, 2)
    )
    chains = "".join(f":s{n} - [0:0]\n" + "".join(f":e{n}{e} - [0:0]\n" for e in (1, 2)) for n in (1, 2))
    jumps = "".join(f"-A PREROUTING -d 10.96.0.{n}/32 -p tcp -m tcp --dport 80 -j s{n}\n" for n in (1, 2))
    ends = "".join(f"-A s{n} -j e{n}1\n" for n in (1, 2))
    text = f"*nat\n:PREROUTING ACCEPT [0:0]\n{chains}{jumps}{rules}{ends}COMMIT\n"
    table = emit(lower(read_ruleset(text.encode(), name="rules"), level=level)).structure
    declared = {each.name for each in table.sets}
    lists = {each.name: each for each in table.lists}
    assert set(lists) == {"list11", "list12", "list21", "list22"}
    assert len({(each.names, each.key) for each in table.lists}) == 4
    for name, each in lists.items():
        assert set(each.names) <= declared
        assert len(each.names) == 1
        assert each.key == (("10.96.0." + name[4],) if level == 2 else ())
    assert (len(declared) == 2) is (level == 2)
