"""Modules of nftables text; tests/kernel/test_nft_modules.py compares them with what nft sends."""

from __future__ import annotations

import pytest

from nfparity.requires.nftmodules import nft_modules

PARTS = {
    "type nat hook prerouting priority dstnat": {"nft_chain_nat"},
    "ct state new accept": {"nft_ct"},
    "notrack": {"nft_ct"},
    "add @s { ip saddr ct count over 3 }": {"nft_connlimit"},
    "dnat to 10.0.0.1:80": {"nft_nat"},
    "snat ip to 10.0.0.1": {"nft_nat"},
    "masquerade random": {"nft_masq"},
    "redirect to :80": {"nft_redir"},
    "numgen random mod 3 vmap @m": {"nft_numgen"},
    "jhash ip saddr mod 2 seed 1 0": {"nft_hash"},
    "limit rate 5/minute burst 5 packets": {"nft_limit"},
    "quota over 100 bytes": {"nft_quota"},
    'log prefix "quota over " level info': {"nft_log"},
    "socket transparent 1": {"nft_socket"},
    "tproxy to :1": {"nft_tproxy"},
    "fib daddr type local": {"nft_fib", "nft_fib_ipv4"},
    "reject with tcp reset": {"nft_reject", "nft_reject_ipv4"},
    "flow add @f": {"nft_flow_offload"},
    'ip saddr 10.0.0.1 counter comment "ct log fib"': set(),
    "meta mark set 1 # masquerade": set(),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_rules(part: str) -> None:
    assert nft_modules(f"table ip t {{\n chain c {{\n  {part}\n }}\n}}\n") == PARTS[part] | {"nf_tables"}


def test_modules_of_a_family() -> None:
    text = "table {family} t {{\n chain c {{\n  reject\n }}\n}}\n"
    assert nft_modules(text.format(family="ip6")) == {"nf_tables", "nft_reject", "nft_reject_ipv6"}
    inet = {"nf_tables", "nft_reject", "nft_reject_inet", "nft_reject_ipv4", "nft_reject_ipv6"}
    assert nft_modules(text.format(family="inet")) == inet


def test_the_module_of_a_helper() -> None:
    text = 'table ip t {\n ct helper h {\n  type "ftp" protocol tcp\n }\n}\n'
    assert nft_modules(text) == {"nf_tables", "nft_ct", "nf_conntrack_ftp"}
