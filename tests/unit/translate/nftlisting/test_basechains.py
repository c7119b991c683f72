"""Base chains of a listing, with their hooks and priorities."""

from __future__ import annotations

import json

import pytest

from translate.nftlisting import BaseChain, base_chains, read_listing, table_names

TEXT = """\
table inet one {
	chain pre { type nat hook prerouting priority dstnat - 10; policy accept; }
	chain plain { accept; }
}
table netdev edge {
	chain in { type filter hook ingress device "eth0" priority 5; }
}
add table ip two
add chain ip two post { type nat hook postrouting priority 100 ; }
add chain two out { type filter hook output priority filter; }
define p = 7
add chain two odd { type filter hook input priority $p; }
"""
CHAIN = {"family": "ip6", "table": "t", "name": "c", "type": "nat", "hook": "input", "prio": 100}


def test_priorities_are_numbers_or_named_or_unknown() -> None:
    listing = read_listing(TEXT, name="text")
    assert base_chains(listing) == (
        BaseChain("inet", "one", "pre", "nat", "prerouting", -110),
        BaseChain("netdev", "edge", "in", "filter", "ingress", 5),
        BaseChain("ip", "two", "post", "nat", "postrouting", 100),
        BaseChain("ip", "two", "out", "filter", "output", 0),
        BaseChain("ip", "two", "odd", "filter", "input", None),
    )
    assert table_names(listing) == {"inet one", "netdev edge", "ip two"}


def test_json_says_the_same() -> None:
    text = json.dumps({"nftables": [{"table": {"family": "ip6", "name": "t"}}, {"chain": CHAIN}]})
    listing = read_listing(text, name="json")
    assert base_chains(listing) == (BaseChain("ip6", "t", "c", "nat", "input", 100),)
    assert table_names(listing) == {"ip6 t"}


@pytest.mark.parametrize(
    ("word", "number"), [("raw", -300), ("mangle + 1", -149), ("security", 50), ("srcnat -1", 99)]
)
def test_each_name_of_nft_has_its_number(word: str, number: int) -> None:
    text = f"table ip t {{\n\tchain c {{ type filter hook forward priority {word}; }}\n}}\n"
    (chain,) = base_chains(read_listing(text, name="text"))
    assert chain.priority == number
