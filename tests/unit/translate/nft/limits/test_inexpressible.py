from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate import nft
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset


@pytest.mark.parametrize(
    ("table", "rule", "feature"),
    [
        ("filter", '-A INPUT -i "a b" -j DROP', "interface-name"),
        ("filter", r'-A INPUT -j LOG --log-prefix "a\"b"', "log-prefix"),
        ("raw", "-A PREROUTING -j CT --zone mark", "ct-zone-mark"),
        ("raw", "-A PREROUTING -j CT --ctevents new", "ct-template"),
        ("raw", "-A PREROUTING -p tcp -j CT --timeout slow", "ct-template"),
        ("nat", "-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1:1000-2000/3000", "nat-port-shift"),
    ],
)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_refused_with_the_line(table: str, rule: str, feature: str, level: int) -> None:
    with pytest.raises(UnsupportedError) as error:
        nft.emit(program(table, rule, level=level))
    (refusal,) = error.value.refusals
    assert (refusal.feature, refusal.origin.text) == (feature, rule)


def test_types_of_ipv6_addresses() -> None:
    text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m addrtype --dst-type {} -j DROP\nCOMMIT\n"
    local, unicast = (
        lower(read_ruleset(text.format(kind).encode(), name="rules", family=Family.IP6), level=0)
        for kind in ("LOCAL", "UNICAST")
    )
    assert "fib daddr type local" in nft.emit(local).text
    with pytest.raises(UnsupportedError) as error:
        nft.emit(unicast)
    assert [refusal.feature for refusal in error.value.refusals] == ["addrtype6"]


def test_a_proxy_of_handshakes_is_refused_over_ipv6() -> None:
    rule = "-A INPUT -p tcp -m tcp --dport 443 -j SYNPROXY --mss 1440"
    text = f"*filter\n:INPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    with pytest.raises(UnsupportedError) as error:
        nft.emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=2))
    (refusal,) = error.value.refusals
    assert (refusal.feature, refusal.origin.text) == ("synproxy6", rule)
    assert "synproxy mss 1440" in nft.emit(program("filter", rule, level=2)).text


@pytest.mark.parametrize("test", ["-p ah", "! -p ah", "-p 51"])
def test_ah_as_a_protocol_of_ipv6_is_refused(test: str) -> None:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p tcp -j ACCEPT\n-A INPUT {test} -j DROP\nCOMMIT\n"
    for level in (0, 2):
        with pytest.raises(UnsupportedError) as error:
            nft.emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=level))
        assert [(r.feature, r.origin.line) for r in error.value.refusals] == [("ah6-protocol", 4)]
        assert "51" in nft.emit(lower(read_ruleset(text.encode(), name="rules"), level=level)).text
