"""The tables of a listing, and their base chains: the hooks where they see packets, and their priorities."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from translate.dataclass import dataclass
from translate.nftlisting.commands import Form
from translate.nftlisting.listing import Listing

__all__ = ["BaseChain", "base_chains", "table_names"]

_CHAIN: Final = re.compile(
    r"(?:add|create) chain (?:(?P<family>ip6?|inet|arp|bridge|netdev) )?(?P<table>\S+) (?P<name>\S+)"
    r" *\{ *type (?P<type>\w+) +hook (?P<hook>\w+) [^;]*?priority +(?P<priority>[^;}]+)"
)
_TABLE: Final = re.compile(
    r"(?:add|create) table (?:(?P<family>ip6?|inet|arp|bridge|netdev) )?(?P<name>[^\s;{]+)"
)
_PRIORITY: Final = re.compile(r"(?P<name>[a-z]+)?\s*(?P<offset>[+-]?\s*\d{1,10})?")
_NAMED: Final = {
    "raw": -300,
    "mangle": -150,
    "dstnat": -100,
    "filter": 0,
    "security": 50,
    "srcnat": 100,
}
"""Names of priorities in the families ip, ip6 and inet (``std_prios`` of nft)."""


@dataclass(frozen=True, slots=True)
class BaseChain:
    """A chain at a hook; ``hook`` is spelled as by nft (``prerouting``).

    ``priority`` is None if the text gives it by a variable (``define``).
    """

    family: str
    table: str
    name: str
    type: str
    hook: str
    priority: int | None


def base_chains(listing: Listing) -> tuple[BaseChain, ...]:
    """Return the base chains in their order."""
    return tuple(_chains(listing))


def table_names(listing: Listing) -> frozenset[str]:
    """Return the tables that a listing adds, each with its family (``ip kube-proxy``)."""
    names = set()
    for command in listing.commands:
        if command.form is Form.JSON:
            data = json.loads(command.text).get("add", {}).get("table", {})
            if "name" in data:
                names.add(f"{data['family']} {data['name']}")
        elif match := _TABLE.match(command.text):
            names.add(f"{match['family'] or 'ip'} {match['name']}")
    return frozenset(names)


def _chains(listing: Listing) -> Iterator[BaseChain]:
    for command in listing.commands:
        if command.form is Form.JSON:
            data = json.loads(command.text).get("add", {}).get("chain", {})
            if "hook" in data:
                priority: int | None = data["prio"]
                yield BaseChain(
                    data["family"], data["table"], data["name"], data["type"], data["hook"], priority
                )
            continue
        match = _CHAIN.match(command.text)
        if match is not None:
            family, priority = match["family"] or "ip", _number(match["priority"].strip())
            yield BaseChain(family, match["table"], match["name"], match["type"], match["hook"], priority)


def _number(text: str) -> int | None:
    """Return the number of a priority; None for a variable (``define``)."""
    match = _PRIORITY.fullmatch(text)
    if match is None or (match["name"] is not None and match["name"] not in _NAMED):
        return None
    offset = 0 if match["offset"] is None else int(match["offset"].replace(" ", ""))
    return offset if match["name"] is None else _NAMED[match["name"]] + offset
