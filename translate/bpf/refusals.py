"""The features of rules that a tc program cannot express, each with its description."""

from __future__ import annotations

from typing import Final

from translate.errors import Refusal
from translate.ir import Origin

__all__ = ["BACKEND", "REFUSED", "CannotExpress", "refusal"]

BACKEND: Final = "tc-ebpf"
"""The name of this backend in refusals."""

REFUSED: Final = {
    "addrtype6": "`-m addrtype` over IPv6 with any type but `LOCAL`",
    "checksum": "`-j CHECKSUM`",
    "classify": "`-j CLASSIFY`",
    "ct-template": "`-j CT` with anything but `--notrack`",
    "empty-nat": "a NAT target that binds neither an address nor a port",
    "entry-size": "rules whose actions, put together into one entry of a map, carry more than twelve numbers",
    "interface-mask": "an interface compared under a mask",
    "ipsec": "`-m policy`",
    "ipset": "`-m set` of a set whose members are not known",
    "program-size": "chains of more than 4,096 rules in one hook, counted wherever a jump leads to them",
    "recent-hitcount": "`-m recent --hitcount` above 1",
    "recent-mask": "`-m recent` with two masks for one list",
    "recent-reap": "`-m recent --reap` where other rules look for older addresses of the list",
    "recent-rttl": "`-m recent --rttl`",
    "reject-kind": "`-j REJECT` with an answer of the other family",
    "socket-lookup": "`-m socket`",
    "socket-owner": "`-m owner` and `-m cgroup`",
    "unknown": "a rule of which the input hides something",
    "unmodelled": "a match, target or option that is not modelled (`-m string`): kept as written",
}
"""Descriptions of the refused features, by the name in a :class:`~translate.errors.Refusal`.

Every translation refuses ``ipset`` and ``unknown`` before it begins.
"""


class CannotExpress(Exception):  # noqa: N818  # caught inside this package, never shown
    """A test or action that has no exact form here; ``feature`` and ``reason`` go into the Refusal.

    Raises KeyError for a feature that :data:`REFUSED` does not explain.
    """

    def __init__(self, feature: str, reason: str) -> None:
        super().__init__(reason)
        if feature not in REFUSED:
            raise KeyError(feature)
        self.feature = feature
        self.reason = reason


def refusal(origin: Origin, cannot: CannotExpress) -> Refusal:
    """Return the refusal of the rule that comes from ``origin``."""
    return Refusal(origin, BACKEND, cannot.feature, cannot.reason)
