from __future__ import annotations

import pytest

from backends.simulator.walk.prepare import prepare
from translate.errors import UnsupportedError
from translate.ir import Family, Hook, TableName
from translate.read import read_ruleset

TEXT = b"""*nat
:PREROUTING ACCEPT [0:0]
-A PREROUTING -m set --match-set clients src -j ACCEPT
-A PREROUTING -p tcp -m recent --rcheck --seconds 60 --name who --mask 255.255.255.255 --rsource -j RETURN
-A PREROUTING -m recent --set --name who --mask 255.255.255.0 --rsource
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
COMMIT
"""


def test_every_rule_that_is_not_simulated_is_named() -> None:
    with pytest.raises(UnsupportedError) as caught:
        prepare(read_ruleset(TEXT, name="rules"))
    assert [(r.origin.line, r.feature, r.backend) for r in caught.value.refusals] == [
        (3, "ipset", "simulator"),
        (5, "recent-mask", "simulator"),
    ]


def test_of_the_address_types_of_ipv6_only_local_alone_is_simulated() -> None:
    types = ("LOCAL", "UNICAST", "LOCAL,ANYCAST", "MULTICAST")
    lines = [f"-A INPUT -m addrtype --dst-type {t} -j DROP" for t in types]
    lines.append("-A INPUT -m addrtype ! --src-type LOCAL --limit-iface-in -j DROP")
    text = "\n".join(("*filter", ":INPUT ACCEPT [0:0]", *lines, "COMMIT", "")).encode()
    with pytest.raises(UnsupportedError) as caught:
        prepare(read_ruleset(text, name="six", family=Family.IP6))
    assert [(r.origin.line, r.feature) for r in caught.value.refusals] == [
        (4, "addrtype6"),
        (5, "addrtype6"),
        (6, "addrtype6"),
    ]


def test_tables_stand_in_the_kernels_order_whatever_the_dumps() -> None:
    lines = [x for x in TEXT.decode().splitlines() if not x.startswith("-A")]
    prepared = prepare(read_ruleset("\n".join(lines).encode(), name="rules"))
    assert [t.name for t, _ in prepared.at[Hook.PREROUTING]] == [TableName.RAW]
    lines.insert(2, "-A PREROUTING -m conntrack --ctstate NEW")
    prepared = prepare(read_ruleset("\n".join(lines).encode(), name="rules"))
    assert [t.name for t, _ in prepared.at[Hook.PREROUTING]] == [TableName.RAW, TableName.NAT]
