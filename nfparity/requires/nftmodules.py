"""The kernel modules of the expressions in nftables text.

``nf_tables`` asks for an expression by ``nft-expr-NAME``, or with a family by ``nft-expr-FAMILY-NAME``, for
an object by ``nft-obj-TYPE`` and for a chain of NAT by ``nft-chain-FAMILY-nat`` (``nft_request_module``).
Expressions without a module are part of ``nf_tables``: payload, meta, comparisons, sets, counters, verdicts.
"""

from __future__ import annotations

import re
from typing import Final

from nfparity.requires.modules import helper_module

__all__ = ["nft_modules"]

_QUOTED: Final = re.compile(r'"[^"\n]*"')
_COMMENT: Final = re.compile(r"#.*")
_HELPER: Final = re.compile(r'\btype "([^"]+)" protocol ')
_TABLE: Final = re.compile(r"^\s*(?:add |create )?table (ip6|ip|inet) ", re.MULTILINE)

_BY_WORD: Final = (
    (r"type nat hook", ("nft_chain_nat",)),
    (r"\bct (?!count\b)|\bnotrack\b", ("nft_ct",)),
    (r"\bct count\b", ("nft_connlimit",)),
    (r"\b[ds]nat\b(?! hook)", ("nft_nat",)),
    (r"\bmasquerade\b", ("nft_masq",)),
    (r"\bredirect\b(?! hook)", ("nft_redir",)),
    (r"\bnumgen\b", ("nft_numgen",)),
    (r"\b[js]y?m?hash\b", ("nft_hash",)),
    (r"\blimit (?:rate|name)\b|^\s*limit ", ("nft_limit",)),
    (r"\bquota\b", ("nft_quota",)),
    (r"\blog\b", ("nft_log",)),
    (r"\bqueue\b", ("nft_queue",)),
    (r"\bsocket (?:transparent|wildcard|mark|cgroupv2)\b", ("nft_socket",)),
    (r"\btproxy\b", ("nft_tproxy",)),
    (r"\bsynproxy\b", ("nft_synproxy",)),
    (r"\bosf\b", ("nft_osf",)),
    (r"\bipsec (?:in|out)\b", ("nft_xfrm",)),
    (r"\bflow add @|\bflow offload @", ("nft_flow_offload",)),
)
_BY_WORD_AND_FAMILY: Final = (
    (r"\bfib\b", "nft_fib"),
    (r"\breject\b", "nft_reject"),
    (r"\bdup to\b", "nft_dup"),
)
_FAMILIES: Final = {"ip": ("ipv4",), "ip6": ("ipv6",), "inet": ("inet", "ipv4", "ipv6")}


def nft_modules(text: str) -> frozenset[str]:
    """Return the modules that a file for ``nft -f`` needs, ``nf_tables`` included."""
    helpers = {helper_module(name) for name in _HELPER.findall(text)}
    text = _COMMENT.sub("", _QUOTED.sub('""', text))
    modules = {"nf_tables", *helpers}
    for pattern, names in _BY_WORD:
        if re.search(pattern, text, re.MULTILINE):
            modules.update(names)
    for pattern, name in _BY_WORD_AND_FAMILY:
        if re.search(pattern, text):
            for family in set(_TABLE.findall(text)):
                modules.update((name, *(f"{name}_{suffix}" for suffix in _FAMILIES[family])))
    return frozenset(modules - {"nft_dup", "nft_dup_inet"})
