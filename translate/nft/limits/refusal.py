"""Refusals of the nftables translation: raised for a test or action, collected rule by rule."""

from __future__ import annotations

from typing import Final

from translate.errors import Refusal
from translate.ir import Origin

__all__ = ["BACKEND", "REFUSED", "CannotSay"]

BACKEND: Final = "nftables"

REFUSED: Final = {
    "addrtype6": "`-m addrtype` over IPv6 with any type but `LOCAL`",
    "any-of-with-map": "a lookup behind a test that takes several rules",
    "checksum": "`-j CHECKSUM`",
    "ct-template": "`-j CT` with `--helper`, `--timeout`, `--ctevents` or `--expevents`",
    "ct-zone-mark": "`-j CT --zone mark`",
    "interface-name": "an interface whose name nft cannot spell",
    "ipset": "`-m set` of a set whose members are not known",
    "ipset-protocol": "`-m set` of a set with elements of a protocol without ports beside its type",
    "ipv6-fragment": "`-f` over IPv6",
    "jump-depth": "chains more than 15 below a built-in one, which cannot be written out",
    "log-prefix": "a `--log-prefix` or `--nflog-prefix` with a double quote or a control character",
    "nat-port-shift": "`--to-destination A:1000-2000/3000`, ports counted from another one, unless the rule"
    " tests the destination port and each one gets a port of its own",
    "notrack-answers": "`NOTRACK` in OUTPUT where another rule can tell what the node's own errors are",
    "recent-hitcount": "`-m recent --hitcount` above 1",
    "recent-mask": "`-m recent` with two masks for one list",
    "recent-reap": "`-m recent --reap` where other rules look for older addresses of the list",
    "recent-rttl": "`-m recent --rttl`",
    "reject-kind": "`-j REJECT` with an answer of the other family",
    "unknown": "a rule of which the input hides something",
    "unmodelled": "a match, target or option that is not modelled (`-m string`): kept as written",
}
"""Descriptions of the refused features, by the name in a :class:`~translate.errors.Refusal`.

Every translation refuses ``ipset`` and ``unknown`` before it begins.
"""


class CannotSay(Exception):  # noqa: N818  # not an error by itself: becomes a Refusal with an origin
    """A test or an action without an exact nftables form; ``feature`` as in :class:`Refusal`.

    Raises KeyError for a feature that :data:`REFUSED` does not explain.
    """

    def __init__(self, feature: str, reason: str) -> None:
        if feature not in REFUSED:
            raise KeyError(feature)
        self.feature = feature
        self.reason = reason
        super().__init__(reason)

    def at(self, origin: Origin) -> Refusal:
        """Return the refusal of the rule at ``origin``."""
        return Refusal(origin, BACKEND, self.feature, self.reason)
