"""Needs of rules, with their places."""

from __future__ import annotations

from backends.model.variant import Variant
from nfparity.requires import Need, Purpose, kube_proxy_needs, rules_needs, translation_needs
from translate.ir import Family
from translate.read import read_ruleset

RULES = b"""\
*filter
:INPUT ACCEPT [0:0]
:OWN - [0:0]
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment ssh -j OWN
-A INPUT -m u32 --u32 "0x0=0x1" -j LOG
-A OWN -p tcp -m tcp --dport 23 -j DROP
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p tcp -m tcp --dport 21 -j CT --helper ftp
COMMIT
"""


def lines(needs: tuple[Need, ...]) -> dict[tuple[str, str], list[int]]:
    return {(need.module, need.feature): [origin.line for origin in need.rules] for need in needs}


def test_rules_of_both_variants() -> None:
    ruleset = read_ruleset(RULES, name="rules")
    extensions = {
        ("xt_tcpudp", "-m tcp"): [4, 6, 10],
        ("xt_comment", "-m comment"): [4],
        ("xt_u32", "-m u32"): [5],
        ("xt_LOG", "-j LOG"): [5],
        ("xt_CT", "-j CT"): [10],
        ("nf_conntrack_ftp", "-j CT --helper ftp"): [10],
    }
    assert lines(rules_needs(ruleset, Variant.LEGACY)) == extensions | {
        ("ip_tables", "table filter"): [],
        ("iptable_filter", "table filter"): [],
        ("ip_tables", "table raw"): [],
        ("iptable_raw", "table raw"): [],
    }
    assert lines(rules_needs(ruleset, Variant.NFT)) == extensions | {
        ("nf_tables", "table filter"): [],
        ("nft_compat", "table filter"): [],
        ("nf_tables", "table raw"): [],
        ("nft_compat", "table raw"): [],
    }


def test_needs_of_translations_have_no_places() -> None:
    (need,) = translation_needs("table ip t {\n}\n")
    assert need == Need(module="nf_tables", purpose=Purpose.TRANSLATION, feature="")


def test_kube_proxy_needs_only_the_families_of_the_node() -> None:
    assert "nft_fib_ipv6" not in {need.module for need in kube_proxy_needs([Family.IP])}
    assert {need.module for need in kube_proxy_needs(Family)} >= {"nft_fib_ipv4", "nft_reject_ipv6"}
