"""Matches and targets of iptables whose meaning is not modelled: rules with them are kept as spelled.

Each is declared only by its options, so its rules are read, written again to the byte and named in reports. A
match may hold or not; ``EFFECT`` targets do not change the modelled properties of a packet, and the next rule
follows; ``ACTION`` targets may do anything. The options are those of ``iptables-extensions(8)`` 1.8.9.
"""

from __future__ import annotations

from typing import Final

from translate.ir import Family, Hidden
from translate.read.extensions.declaration import MatchExtension, OptionSpec, TargetExtension

__all__ = ["MATCHES", "TARGETS"]

_MATCH_OPTIONS: Final = """
ipvs: !--ipvs=0 !--vproto=1 !--vaddr=1 !--vport=1 --vdir=1 !--vmethod=1 !--vportctl=1
osf: !--genre=1 --ttl=1 --log=1
rateest: --rateest=1 --rateest1=1 --rateest2=1 --rateest-delta=0 --rateest-bps=?
 --rateest-bps1=? --rateest-bps2=? --rateest-pps=? --rateest-pps1=? --rateest-pps2=?
 !--rateest-lt=0 !--rateest-gt=0 !--rateest-eq=0
"""

_EFFECTS: Final = """
ULOG: --ulog-nlgroup=1 --ulog-prefix=1 --ulog-cprange=1 --ulog-qthreshold=1
"""

_ACTIONS: Final = """
CLUSTERIP: --new=0 --hashmode=1 --clustermac=1 --total-nodes=1 --local-node=1 --hash-init=1
"""

_ONE_FAMILY: Final = {
    **dict.fromkeys(("CLUSTERIP", "ULOG"), Family.IP),
}


_REASONS: Final = {
    "ipvs": "nftables and the tc program read nothing of a connection of IPVS",
    "osf": (
        "nftables takes the first fingerprint that fits a packet, xt_osf any one of the genre; several genres"
        " have the same one"
    ),
    "rateest": "nftables and the tc program have no estimators of rates",
    "ULOG": "Linux has had no ULOG since 3.17; NFLOG took its place",
    "CLUSTERIP": (
        "neither nftables nor the tc program answers ARP requests for a shared address; Linux has removed"
        " CLUSTERIP; -m cluster took its place"
    ),
}
"""The reasons why an extension that is not modelled cannot be translated. Its name in small letters is the
feature of refusals.
"""

_GONE: Final = {"ULOG": "3.17"}
"""The releases of Linux that first lacked an extension, where no supported kernel has it."""


def _declared(text: str) -> dict[str, tuple[OptionSpec, ...]]:
    """Return the options of each extension.

    ``!`` precedes an option that may be negated, ``*`` follows one that may be repeated, and ``?`` follows
    one with an optional value.
    """
    joined = text.replace("\n ", " ").strip().splitlines()
    lines = (line.partition(":") for line in joined)
    return {name: tuple(map(_option, options.split())) for name, _, options in lines}


def _option(text: str) -> OptionSpec:
    names, _, shape = text.removeprefix("!").partition("=")
    name, *aliases = names.split(",")
    return OptionSpec(
        name=name,
        aliases=tuple(aliases),
        arguments=0 if shape == "?" else int(shape.removesuffix("*")),
        invertible=text.startswith("!"),
        repeated=shape.endswith("*"),
        optional=shape == "?",
    )


def _targets(text: str, hides: Hidden) -> tuple[TargetExtension, ...]:
    return tuple(
        TargetExtension(
            name=name,
            options=options,
            meaning=None,
            hides=hides,
            family=_ONE_FAMILY.get(name),
            reason=_REASONS[name],
            kind=name.lower(),
            removed_in=_GONE.get(name, ""),
        )
        for name, options in _declared(text).items()
    )


MATCHES: Final = tuple(
    MatchExtension(
        name=name,
        options=options,
        meaning=None,
        family=_ONE_FAMILY.get(name),
        reason=_REASONS[name],
        kind=name,
    )
    for name, options in _declared(_MATCH_OPTIONS).items()
)

TARGETS: Final = (*_targets(_EFFECTS, Hidden.EFFECT), *_targets(_ACTIONS, Hidden.ACTION))
