"""The nf_tables chains that packets traverse, and what decides between the outcomes of equal flows there.

Only the kernel knows what a given ruleset does with a packet. While rules are watched, every packet is marked
for ``nftrace``, and the kernel reports the chain and the verdict of each rule that matched
(``nft_trace_notify``). Rules that did not match are not reported, so all rules of a chain count for every
packet in it.
"""

from __future__ import annotations

import errno
import re
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

from backends.given_nftables.variation import declaration_may_vary, rule_may_vary
from backends.replay.loader import Watched
from backends.testbed.libnftables import NftHandle
from translate.dataclass import dataclass
from translate.ir import Family

__all__ = ["ListedChain", "Tracer", "filled_sets", "listed_port_boundaries", "read_chains"]

_NETLINK_NETFILTER: Final = 12
_SOL_NETLINK: Final = 270
_ADD_MEMBERSHIP, _DROP_MEMBERSHIP = 1, 2
_GROUP: Final = 9
"""The netlink group of traces (``NFNLGRP_NFTRACE``)."""
_TRACE: Final = 10 << 8 | 17
"""The type of a trace message (``NFNL_SUBSYS_NFTABLES``, ``NFT_MSG_TRACE``)."""
_TABLE, _CHAIN, _VERDICT = 1, 2, 5
_VERDICT_CHAIN: Final = 2
_NAMING: Final = frozenset({_TABLE, _CHAIN, _VERDICT})
_LEADING: Final = frozenset({_VERDICT_CHAIN})
_MESSAGE: Final = struct.Struct("=IH")
"""Length and type of a netlink message."""
_ATTRIBUTE: Final = struct.Struct("=HH")
"""Length and type of an attribute."""
_SO_RCVBUFFORCE: Final = 33
_ROOM: Final = 1 << 24
"""The size in bytes of the receive buffer: enough for the messages of several thousand packets."""

_FAMILIES: Final = {1: "inet", 2: "ip", 5: "netdev", 7: "bridge", 10: "ip6"}
_NAME: Final = "nfparity_trace"
_FIRST: Final = -2_000_000_000

_HEAD: Final = re.compile(r"(table|chain|set|map) (?:(\w+) )?(\S+) \{")
_RANDOM: Final = re.compile(r"\bnumgen (?:random|inc) mod (0x[0-9a-f]+|\d+)(.*)")
_DEPENDENT: Final = re.compile(r"\b(?:numgen inc|jhash|symhash)\b")
_SOURCE_PORT: Final = re.compile(r"\b(?:sport|proto-src)\b")
_COMPUTED_PORT: Final = re.compile(r"\b(?:dport|proto-dst)\s+(?:[&|^]|<<|>>|and|or|xor|lshift|rshift)\s")
_NUMBER: Final = re.compile(r"(?<![\w.])(?:0x[0-9a-f]+|[1-9]\d*)(?![\w.])")
_INLINE: Final = re.compile(r"(?:\s+offset \d+)?\s+v?map \{([^}]*)\}")
_KEY: Final = re.compile(r"\s*(\d+)(?:-(\d+))?\s*:")
_COMPARED: Final = re.compile(r"(?:\s+offset \d+)?\s+(?:(<=?|>=?|!=|==)\s+)?(\d+)(?:-(\d+))?(?!\S)")
_LOOKUP: Final = re.compile(r"@(\S+)")
_FILLS: Final = re.compile(r"\b(?:add|update) @(\S+)")
_COMMENT: Final = re.compile(r'"[^"\n]*"')
_LEAST: Final = Fraction(1, 1000)
"""The assumed probability of a choice if the rule does not show it, for example with a named map."""

_Place = tuple[str, str, str]
"""Family, table, and the name of a chain or set."""


@dataclass(frozen=True, slots=True)
class ListedChain:
    """The probability of the least likely random path through a chain, and the state of its rules.

    ``fills`` are the names of the sets that its rules fill. ``dependent``: a rule counts or hashes packets.
    ``varies``: a rule may depend on something that the trace does not show. ``base``: it is a base chain,
    which counts as visited although the kernel does not report every visit.
    """

    rarest: Fraction = Fraction(1)
    fills: frozenset[str] = frozenset()
    dependent: bool = False
    varies: bool = False
    base: bool = False


def read_chains(listing: str) -> dict[_Place, ListedChain]:
    """Return the chains in the output of ``nft list ruleset`` that may treat equal flows differently."""
    chains: dict[_Place, ListedChain] = {}
    family = table = chain = declared = ""
    varying: set[str] = set()  # the sets of the table whose elements may change
    inner = 0  # the depth of anonymous chains, whose rules count as rules of the enclosing chain
    for line in listing.splitlines():
        text = _COMMENT.sub('""', line).strip()
        head = _HEAD.fullmatch(text)
        if head is not None and head[1] == "table":
            family, table, chain = head[2] or "ip", head[3], ""
            varying.clear()
        elif head is not None and head[1] == "chain":
            chain = head[3]
            chains[family, table, chain] = ListedChain()
        elif head is not None:
            declared = head[3]
        elif text.startswith("}"):
            chain = chain if inner else ""
            declared = ""
            inner = max(0, inner - 1)
        elif chain:
            inner += text.endswith("{")
            before = chains[family, table, chain]
            base = text.startswith("type ")
            chains[family, table, chain] = ListedChain(
                rarest=before.rarest * _share(text),
                fills=before.fills.union(_FILLS.findall(text)),
                dependent=before.dependent or bool(_DEPENDENT.search(text)),
                varies=before.varies
                or (not base and rule_may_vary(text))
                or (bool(varying) and not varying.isdisjoint(_LOOKUP.findall(text))),
                base=before.base or base,
            )
        elif declared and declaration_may_vary(text):
            varying.add(declared)
    return {place: c for place, c in chains.items() if c.fills or c.dependent or c.varies or c.rarest < 1}


def listed_port_boundaries(listing: str, chains: Iterable[ListedChain]) -> tuple[int, ...] | None:
    """Return the ``port_boundaries`` of the rules of a listing, which have these ``chains``.

    Every number that can be a port counts, because an answer has the client's port as its destination port.
    None if a rule may read a source port, or computes with a port.
    """
    if _SOURCE_PORT.search(listing) is not None or any(c.varies or c.dependent for c in chains):
        return None
    text = _COMMENT.sub('""', listing)
    if _COMPUTED_PORT.search(text) is not None:
        return None
    numbers = {int(number, 0) for number in _NUMBER.findall(text)}
    ends = {end for number in numbers for end in (number, number + 1)}
    return tuple(sorted(end for end in ends if end < 1 << 16))


def _share(rule: str) -> Fraction:
    """Return the probability of the least likely outcome of a rule's random choices."""
    match = _RANDOM.search(rule)
    if match is None:
        return Fraction(1)
    modulus, rest = int(match[1], 0), match[2]
    widths: list[int] = []
    if inline := _INLINE.match(rest):
        for element in inline[1].split(","):
            key = _KEY.match(element)
            if key is not None:
                widths.append(int(key[2] or key[1]) - int(key[1]) + 1)
        widths.append(modulus - sum(widths))
    elif (compared := _COMPARED.match(rest)) and compared[1] in (None, "==", "!="):
        width = int(compared[3] or compared[2]) - int(compared[2]) + 1
        widths = [width, modulus - width]
    elif compared:
        bound = int(compared[2]) + (compared[1] in ("<=", ">"))
        widths = [bound, modulus - bound]
    elif modulus * _LEAST <= 1:
        widths = [1] if modulus > 1 else []
    shares = [Fraction(width, modulus) for width in widths if 0 < width < modulus]
    unknown = Fraction(1) if inline or compared or modulus * _LEAST <= 1 else _LEAST
    return min(shares, default=unknown) * (_share(rest) if rest else 1)


def filled_sets(chains: Mapping[_Place, ListedChain]) -> frozenset[_Place]:
    """Return the families, tables and names of the sets that rules of these chains fill."""
    return frozenset(
        (family, table, name) for (family, table, _), chain in chains.items() for name in chain.fills
    )


class Tracer:
    """Watches the rules that are loaded in the current network namespace."""

    def __init__(self, family: Family, chains: Mapping[_Place, ListedChain], handle: NftHandle) -> None:
        self._chains = chains
        self._filled: set[_Place] = set()
        handle.run(_table(family))
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_NETFILTER
        )
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _ROOM)
        except PermissionError:  # in a user namespace
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _ROOM)
        self._socket.bind((0, 0))
        self._socket.setblocking(False)

    def watch(self) -> None:
        """Begin to watch."""
        self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, _GROUP)

    def watched(self) -> Watched:
        """Stop watching, and return the observations."""
        self._socket.setsockopt(_SOL_NETLINK, _DROP_MEMBERSHIP, _GROUP)
        visited = {place for place, listed in self._chains.items() if listed.base}
        visited.update(place for place in self._visited() if place in self._chains)
        self._filled.update(filled_sets({place: self._chains[place] for place in visited}))
        rarest = Fraction(1)
        for place in visited:
            rarest *= self._chains[place].rarest
        chains = [self._chains[place] for place in visited]
        # All other chains treat equal flows alike.
        return Watched(
            rarest,
            any(chain.fills for chain in chains),
            any(chain.dependent for chain in chains),
            settled=not chains,
        )

    def _visited(self) -> Iterator[_Place]:
        """Yield the chains that packets visited, or all chains if messages of the kernel were lost."""
        while True:
            try:
                data = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except OSError as e:
                if e.errno != errno.ENOBUFS:
                    raise
                yield from self._chains
                continue
            yield from _places(data)

    def take_filled(self) -> frozenset[_Place]:
        """Return the sets that watched packets may have filled since the last call."""
        filled, self._filled = frozenset(self._filled), set()
        return filled

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _table(family: Family) -> str:
    chains = "".join(
        f"\tchain {hook} {{\n\t\ttype filter hook {hook} priority {_FIRST};\n\t\tmeta nftrace set 1\n\t}}\n"
        for hook in ("prerouting", "output")
    )
    return f"table {family.value} {_NAME} {{\n{chains}}}\n"


def _places(data: bytes) -> Iterator[_Place]:
    """Yield the chain of each message and the chain to which its verdict leads."""
    at = 0
    while at + 20 <= len(data):
        length, kind = _MESSAGE.unpack_from(data, at)
        if kind == _TRACE:
            family = _FAMILIES.get(data[at + 16], "")
            attributes = _attributes(data, at + 20, at + length, _NAMING)
            table = _text(attributes.get(_TABLE, b""))
            yield family, table, _text(attributes.get(_CHAIN, b""))
            verdict = attributes.get(_VERDICT, b"")
            target = _text(_attributes(verdict, 0, len(verdict), _LEADING).get(_VERDICT_CHAIN, b""))
            if target:
                yield family, table, target
        at += (length + 3) & ~3


def _attributes(data: bytes, at: int, end: int, kinds: frozenset[int]) -> dict[int, bytes]:
    """Return the attributes of these kinds; a packet has dozens of messages, and each a dozen others."""
    values: dict[int, bytes] = {}
    while at + 4 <= end and len(values) < len(kinds):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < 4:
            break
        kind &= 0x3FFF
        if kind in kinds:
            values[kind] = data[at + 4 : at + length]
        at += (length + 3) & ~3
    return values


@lru_cache(maxsize=4096)
def _text(value: bytes) -> str:
    return value.rstrip(b"\0").decode("utf-8", "surrogateescape")
