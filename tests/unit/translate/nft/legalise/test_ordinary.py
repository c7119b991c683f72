from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.translate.helpers.rules import program
from translate.ir import Apply, Program
from translate.nft import emit
from translate.nft.legalise import alternatives
from translate.nft.legalise.ordinary import is_ordinary
from translate.passes import lower
from translate.read import read_ruleset

RULESETS = Path(__file__).parents[4] / "corpus/rulesets"
SOME = (
    "kube-real",
    "kind-node",
    "calico",
    "header-fields",
    "nft-traps",
    "six",
)


def texts_of(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((RULESETS / name).glob("*")) if "save" in path.name]


def rules(lowered: Program) -> list[Apply]:
    return [s for chain in lowered.chains for s in chain.statements if isinstance(s, Apply)]


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("level", [0, 1])
def test_the_general_way_writes_the_same(name: str, level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = texts_of(name)
    programs = [lower(read_ruleset(text, name="rules"), level=level) for text in texts]
    assert any(is_ordinary(rule) for lowered in programs for rule in rules(lowered))
    directly = [emit(lowered).text for lowered in programs]
    monkeypatch.setattr(alternatives, "is_ordinary", lambda _rule: False)
    assert [emit(lowered).text for lowered in programs] == directly


@pytest.mark.parametrize(
    ("table", "rule", "ordinary"),
    [
        ("filter", "-A INPUT -s 10.0.0.1/32 -p tcp -m tcp --dport 80 -j ACCEPT", True),
        ("filter", "-A INPUT -m statistic --mode random --probability 0.5 -j DROP", True),
        ("filter", "-A INPUT -m statistic --mode nth --every 2 --packet 0 -j DROP", False),
        ("filter", "-A INPUT -p tcp -m tcp --sport 1 --dport 2 -j DROP", False),
        ("filter", "-A INPUT -m limit --limit 1/sec -j DROP", False),
        ("filter", "-A INPUT -s 10.0.0.1/32", False),
        ("mangle", "-A FORWARD -j CONNMARK --save-mark --nfmask 0x1 --ctmask 0x1", False),
        ("nat", "-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1:80", True),
        ("nat", "-A PREROUTING ! -p icmp -j DNAT --to-destination 10.0.0.1", True),
        ("nat", "-A PREROUTING -p tcp -j NETMAP --to 10.0.0.0/24", False),
    ],
)
def test_ordinary_rules(table: str, rule: str, ordinary: bool) -> None:
    (one,) = rules(program(table, rule))
    assert is_ordinary(one) is ordinary
