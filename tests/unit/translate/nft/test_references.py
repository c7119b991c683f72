"""Maps that nft cannot use in rules that are written again."""

from __future__ import annotations

import pytest

from translate.ir import Origin
from translate.nft.elements import ListedElements
from translate.nft.model import NftChain, NftMap, NftRule, NftTable
from translate.nft.references import uses, with_references


def chain(name: str, *rules: str) -> NftChain:
    origin = Origin("rules", 1)
    written = tuple(NftRule(parts=(rule,), origin=origin) for rule in rules)
    return NftChain(name=name, note="", origin=origin, base=None, rules=written)


def a_map(name: str, key: str = "ip daddr . th dport", data: str | None = "ip daddr . th dport") -> NftMap:
    return NftMap(name=name, key=key, data=data, interval=False, elements=ListedElements(()))


def table(chains: tuple[NftChain, ...], *maps: NftMap) -> NftTable:
    return NftTable(family="ip", name="nfparity", objects=(), sets=(), maps=maps, chains=chains)


CHAINS = (
    chain("first", "dnat ip to ip daddr . th dport map @a"),
    chain("second", "dnat ip to ip daddr . th dport map @a", "dnat ip to ip daddr . th dport map @b"),
    chain("third", "dnat ip to ip daddr . th dport map @b"),
    chain("fourth", "dnat ip to ip daddr . th dport map @c"),
)
TABLE = table(CHAINS, a_map("a"), a_map("b"), a_map("c"))


def test_the_maps_and_sets_of_a_chain() -> None:
    assert uses(chain("x", "ip daddr @set accept", "ip saddr vmap @m", "@th,16,16 53 drop")) >= {"set", "m"}
    assert not uses(chain("x", "accept"))


def test_a_map_takes_all_chains_that_use_it_along() -> None:
    chains, maps = with_references(TABLE, {"first"}, set())
    assert (chains, maps) == ({"first", "second", "third"}, {"a", "b"})
    assert with_references(TABLE, {"fourth"}, {"gone"}) == ({"fourth"}, {"c", "gone"})
    assert with_references(TABLE, set(), {"c"}) == ({"fourth"}, {"c"})
    assert with_references(TABLE, set(), set()) == (set(), set())


@pytest.mark.parametrize(
    ("key", "data", "again"),
    [
        ("meta l4proto", "ip6 daddr . th dport", True),
        ("ip daddr . th dport", "verdict", False),
        ("ip daddr . th dport", None, False),
        ("ip daddr", "ip daddr", False),
        ("ip daddr . numgen random mod 3", "ip daddr . th dport", False),
    ],
)
def test_maps_that_nft_can_use_stay(key: str, data: str | None, *, again: bool) -> None:
    only = table((chain("x", "dnat to y map @m"),), a_map("m", key, data))
    assert with_references(only, {"x"}, set()) == ({"x"}, {"m"} if again else set())
