"""Refusals: the exception that translations raise, and the features that all of them refuse."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from translate.errors import Refusal
from translate.ir import Origin

__all__ = ["REFUSED_BY_ALL", "CannotTranslate"]

REFUSED_BY_ALL: Final = {
    "addrtype6": "`-m addrtype` over IPv6 with any type but `LOCAL`",
    "bpf": "`-m bpf --object-pinned`: nf_tables runs no BPF program, and the tc program none but itself",
    "bridge-port": "`-m physdev` with any option but `--physdev-is-in`",
    "clusterip": (
        "`-j CLUSTERIP`: neither nf_tables nor the tc program answers ARP requests for a shared address"
    ),
    "ipset": "`-m set` of a set whose members are not known",
    "ipvs": "`-m ipvs`: nf_tables and the tc program read nothing of a connection of IPVS",
    "mh-order": "`-m mh` after a test that counts, draws or keeps a state",
    "osf": (
        "`-m osf`: `osf` of nft takes the first fingerprint that fits a packet, xt_osf any one of the genre"
    ),
    "owner-process": (
        "`-m owner` with `--pid-owner`, `--sid-owner` or `--cmd-owner`: no kernel since 2.6.14 has them"
    ),
    "rateest": "`-m rateest`: nf_tables and the tc program have no estimators of rates",
    "recent-mask": "`-m recent` with two masks for one list",
    "recent-reap": "`-m recent --reap` where other rules look for older addresses of the list",
    "recent-rttl": "`-m recent --rttl`",
    "reject-kind": "`-j REJECT` with an answer of the other family",
    "routing-search": (
        "`-m rt --rt-0-not-strict`: nft reads the first two addresses, and searches no list of them"
    ),
    "set-map": (
        "`-j SET --map-set`: elements of a set in nft and in the tc program have no mark, class and queue"
    ),
    "supplementary-groups": (
        "`-m owner --suppl-groups`: nft reads the group that opened the socket, not the others of the process"
    ),
    "ulog": "`-j ULOG`: no kernel since 3.17 has it",
    "unknown": "a rule that the input shows only in part",
    "unmodelled": "a match or target with a value that is not modelled: kept as written",
}
"""Descriptions of the features that every translation refuses, by the name in a Refusal."""


class CannotTranslate(Exception):  # noqa: N818  # caught inside of translations, never shown
    """A test or action without an exact form in a translation; it becomes a Refusal.

    ``backend`` is the translation's name in refusals, and ``refused`` describes the features it refuses.
    Raises KeyError for a feature that ``refused`` lacks.
    """

    backend: ClassVar[str]
    refused: ClassVar[Mapping[str, str]]

    def __init__(self, feature: str, reason: str) -> None:
        if feature not in self.refused:
            raise KeyError(feature)
        self.feature = feature
        self.reason = reason
        super().__init__(reason)

    def at(self, origin: Origin) -> Refusal:
        """Return the refusal of the rule at ``origin``."""
        return Refusal(origin, self.backend, self.feature, self.reason)
