"""The features of rules that a tc program cannot express, each with its description."""

from __future__ import annotations

from typing import Final

from translate.refusals import REFUSED_BY_ALL, CannotTranslate

__all__ = ["BACKEND", "REFUSED", "CannotExpress"]

BACKEND: Final = "tc-ebpf"
"""The name of this backend in refusals."""

REFUSED: Final = {
    **REFUSED_BY_ALL,
    "connlabel": "`-m connlabel`",
    "connbytes": "`-m connbytes`",
    "connlimit": "`-m connlimit` with a limit above 120",
    "ct-template": "`-j CT` with anything but `--notrack`",
    "empty-nat": "a NAT target that binds neither an address nor a port",
    "entry-size": "rules that become one map entry whose actions have more than twelve numbers",
    "ct-expire": "`-m conntrack --ctexpire`",
    "external": "`-j IDLETIMER`, `LED` and `RATEEST`",
    "hashlimit-window": "`-m hashlimit` with `--hashlimit-rate-match` in one rule of a table, and without it"
    " in another",
    "helper": "`-m helper`",
    "interface-mask": "an interface compared under a mask",
    "ipsec": "`-m policy`",
    "program-size": (
        "more than 4,096 rules in one hook, each counted once for every jump that leads to it; a rule with"
        " `-m connlimit` counts as 64 to 512"
    ),
    "queue": "`-j NFQUEUE`",
    "recent-hitcount": "`-m recent --hitcount` above 1",
    "realm": "`-m realm`",
    "sctp-chunks": "`-m sctp --chunk-types`",
    "secmark": "`-j SECMARK` and `-j CONNSECMARK`",
    "set-forceadd": "`-j SET` of a set with `forceadd`",
    "set-nets": "`-j SET` of a set with networks",
    "socket-lookup": "`-m socket`",
    "socket-owner": "`-m owner`",
    "socket-taker": "`-m cgroup` in INPUT",
    "synproxy": "`-j SYNPROXY`",
    "tee": "`-j TEE`",
    "tproxy": "`-j TPROXY`",
}
"""Descriptions of the refused features, by the name in a :class:`~translate.errors.Refusal`."""


class CannotExpress(CannotTranslate):
    """A test or action that a tc program cannot express exactly."""

    backend = BACKEND
    refused = REFUSED
