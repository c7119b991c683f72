"""Faults of every match: a key, a relation and a value are found in the text, and each is changed."""

from __future__ import annotations

import pytest

from tests.lab.mutation.extensions import faults_of, singles
from tests.lab.mutation.fault import Place
from tests.lab.mutation.nft_matches import EVERY_MATCH
from tests.lab.mutation.operators import faults_at
from translate.errors import UnsupportedError
from translate.ir import SideEffect

WITHOUT: frozenset[str] = frozenset(
    {
        "-m comment",  # no test
        "-j ACCEPT",
        "-j DROP",
        "-j RETURN",
        "-j NFQUEUE",  # no program reads queues on a node under test
        "-j QUEUE",
    }
)
"""Extensions whose translations have no place for an operator of a match."""


def changed(line: str) -> set[str]:
    return {f"{f.operator}: {f.after}" for f in faults_at(Place("chain", 0, line), EVERY_MATCH)}


@pytest.mark.parametrize(
    ("line", "faults"),
    [
        ("tcp dport 80 drop", {"lost-test: drop", "inverted-test: tcp dport != 80 drop"}),
        ("tcp dport 80 drop", {"number: tcp dport 81 drop", "side: tcp sport 80 drop"}),
        ("ct mark & 0xf0 == 0x10 drop", {"mask: ct mark & 0x70 == 0x10 drop"}),
        ("ct mark & 0xf0 == 0x10 drop", {"inverted-test: ct mark & 0xf0 != 0x10 drop"}),
        ("frag id != 5-7 drop", {"number: frag id != 6-7 drop", "number: frag id != 5-6 drop"}),
        ("tcp dport { 22, 80-90, 443 } drop", {"element: tcp dport { 80-90, 443 } drop"}),
        ("tcp option 8 exists drop", {"inverted-test: tcp option 8 missing drop", "lost-test: drop"}),
        ('ct helper { "f", "ftp" } drop', {'inverted-test: ct helper != { "f", "ftp" } drop'}),
        ('limit name "limit_x_1" drop', {"lost-test: drop"}),
        ("\t\trate 3/minute burst 5 packets", {"rate: \t\trate 4/minute burst 5 packets"}),
        ("\t\trate 3/minute burst 5 packets", {"rate: \t\trate 3/hour burst 5 packets"}),
        ("add @s { ip saddr ct count over 5 } drop", {"count: add @s { ip saddr ct count over 4 } drop"}),
        ("update @s { ip saddr } drop", {"set-change: delete @s { ip saddr } drop", "set-change: drop"}),
        ("ct state established,new drop", {"state: ct state invalid,related,untracked drop"}),
        ("ct state established,new drop", {"state: ct state new drop", "state: ct state established drop"}),
        ("ip ttl set 5", {"value: ip ttl set 6"}),
        ("reject with icmp type host-unreachable", {"reject-kind: reject with icmp type net-unreachable"}),
        ("redirect to :15001", {"port: redirect to :15002", "lost-nat: accept"}),
    ],
)
def test_the_faults_of_a_line(line: str, faults: set[str]) -> None:
    assert faults <= changed(line)


def test_a_comment_is_no_place() -> None:
    assert changed('drop comment "tcp dport 80 drop"') == set()


def test_every_extension_that_nftables_has_is_changed() -> None:
    planted: dict[str, int] = {}
    for single in singles():
        if all(isinstance(action, SideEffect) for action in single.rule.actions):
            continue
        try:
            _, faults = faults_of(single.ruleset)
        except UnsupportedError:
            continue
        mine = sum(fault.operator not in ("lost-line", "verdict") for fault in faults)
        planted[single.extension] = planted.get(single.extension, 0) + mine
    assert {name for name, count in planted.items() if not count} <= WITHOUT
