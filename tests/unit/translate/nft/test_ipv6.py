"""IPv6 rules as nft text: icmpv6, the kinds of reject, brackets, and what is refused."""

from __future__ import annotations

import pytest

from translate.errors import UnsupportedError
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset


def text(*rules: str, table: str = "filter", level: int = 0) -> str:
    hooks = {"filter": "INPUT", "nat": "PREROUTING"}
    lines = (f"*{table}", f":{hooks[table]} ACCEPT [0:0]", *rules, "COMMIT", "")
    ruleset = read_ruleset("\n".join(lines).encode(), name="six", family=Family.IP6)
    return emit(lower(ruleset, level=level)).text


@pytest.mark.parametrize("level", [0, 1])
def test_the_table_is_of_the_family(level: int) -> None:
    assert "table ip6 nfparity {" in text("-A INPUT -s fd00::/8 -j DROP", level=level)


def test_icmpv6() -> None:
    said = text("-A INPUT -p ipv6-icmp -m icmp6 --icmpv6-type 1/4 -j DROP")
    assert "icmpv6 type 1" in said
    assert "icmpv6 code 4" in said


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("icmp6-no-route", "icmpv6 type no-route"),
        ("icmp6-adm-prohibited", "icmpv6 type admin-prohibited"),
        ("icmp6-addr-unreachable", "icmpv6 type addr-unreachable"),
        ("icmp6-port-unreachable", "icmpv6 type port-unreachable"),
        ("icmp6-policy-fail", "icmpv6 type policy-fail"),
        ("icmp6-reject-route", "icmpv6 type reject-route"),
    ],
)
def test_kinds_of_reject(kind: str, said: str) -> None:
    assert f"reject with {said}" in text(f"-A INPUT -j REJECT --reject-with {kind}")


def test_addresses_stand_in_brackets_before_a_port() -> None:
    said = text("-A PREROUTING -p tcp -j DNAT --to-destination [fd00::5]:80", table="nat")
    assert "dnat to [fd00::5]:80" in said


def test_ports_are_read_behind_extension_headers() -> None:
    said = text("-A INPUT -p udp -m udp --dport 53 -j DROP")
    assert "udp dport 53" in said
    assert "nexthdr" not in said  # the header's own field would be that of an extension header


def test_of_address_types_only_local_is_written() -> None:
    assert "fib daddr type local" in text("-A INPUT -m addrtype --dst-type LOCAL -j DROP")
    for kinds in ("UNICAST", "LOCAL,UNICAST", "ANYCAST"):
        with pytest.raises(UnsupportedError) as caught:
            text(f"-A INPUT -m addrtype --dst-type {kinds} -j DROP")
        (one,) = caught.value.refusals
        assert (one.feature, one.origin.line) == ("addrtype6", 3)
