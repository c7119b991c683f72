"""Nftables rules that may treat two equal flows differently although they fill no set.

A trace shows the random choices (``numgen``) on a packet's way (:mod:`.trace`). It does not show what else a
rule may depend on: a rate, a count, the time, the processor, or a random number without ``numgen``.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["may_vary"]

_QUOTED: Final = re.compile(r'(comment|"comment":) "(?:[^"\\\n]|\\.)*"')
_TRACED: Final = re.compile(r"\bnumgen random\b")
_PORTS_ONLY: Final = re.compile(
    r"\b(?:fully-)?random(?=\s*(?:[;,}]|$|fully-random|persistent))", re.MULTILINE
)
"""The flags of ``masquerade`` and ``snat``: they choose the source port only."""
_WORDS: Final = re.compile(
    r"(?<![\w./-])(?:random|inc|limit|quota|count|last|cpu|cgroup|time|day|hour|queue|fwd|dup|synproxy|osf"
    r"|socket|tproxy|skuid|skgid|expiration|id|@(?:th|nh|ll|ih))(?![\w./-])"
)

_RANGE: Final = re.compile(
    r"\b(?:dnat (?:\S+ )*?|redirect )to \S+-\S|: [\da-f.:\[\]]+(?: \. \d+)?-[\d\[]"
    r'|"(?:dnat|redirect)": (?=[^\n]*"range")'
)
"""A range from which a destination is chosen, also as the data of a map."""


def may_vary(text: str) -> bool:
    """Return whether a rule may depend on more than the packets of a flow, ``numgen`` and sets."""
    plain = _TRACED.sub("", _QUOTED.sub("", text))
    return _WORDS.search(_PORTS_ONLY.sub("", plain)) is not None or _RANGE.search(plain) is not None
