"""A packet in one line: the argument of ``nfparity explain --packet``.

::

    udp 10.244.0.9:40000 > 10.96.0.10:53 in pod0
    tcp 10.244.0.9 > 10.96.0.1:443 flags SA
    icmp 10.244.0.9 > 10.244.1.4 type 8/0 id 7
    tcp 172.18.0.2:40000 > 10.96.0.1:443 from node mark 0x4000

Options: ``in IFACE`` (``-``: made on the node, like ``from node``), ``ttl N``, ``tos N``, ``length N``,
``routing TYPE/LEFT/LENGTH`` (a routing header of IPv6), ``hop LENGTH`` and ``destination LENGTH`` (headers of
IPv6 with options), ``fragment OFFSET`` (a fragment at this offset in units of 8 bytes; 0 is the first one),
``truncated N`` (the packet ends after N bytes of its transport header),
``smac MAC`` and ``dmac MAC`` of the frame,
``time 2026-01-05T12:00:00`` (in UTC), ``cpu N`` (the processor that handles the packet), ``mark N``,
``uid N``, ``gid N``, ``flags SA``, ``type T/C`` or its name, ``id N``, ``payload HEX``, ``mss N`` of a SYN,
``bad-checksum``. Without ``in`` the packet enters at the interface of the route to its source. The default
source port is 40000. ``->`` is read as ``>``. The destination may be the name of a service, if the caller
knows services.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from backends.model.clock import time_from_text
from backends.model.flow import Flow, Send
from backends.model.node import Node
from backends.model.packet import EXTENSION_HEADERS, Fragment, Packet, Routing
from backends.wire.frames import truncated
from harness.corpus.formats.entry import entry_of
from harness.corpus.formats.packets import (
    LAST_OFFSET,
    LONGEST,
    LONGEST_OPTIONS,
    icmp_has_identifier,
    icmp_kinds,
    parse_flags,
    parse_protocol,
    protocol_name,
)
from translate.dataclass import replace
from translate.errors import Diagnostic, ParseError
from translate.ir import PORT_PROTOCOLS, Family, Origin, Protocol, parse_mac
from translate.jsoninput import parse_any_address

__all__ = ["DEFAULT_SPORT", "Resolve", "parse_packet"]

Resolve = Callable[[str, str], tuple[Family, int, int]]
"""A function from the name of a service and a protocol to its address and port; ValueError if it has none."""

DEFAULT_SPORT: Final = 40000

_NAME: Final = "--packet"
_WITH_VALUE: Final = (
    *("in", "from", "ttl", "tos", "length", "routing", "hop", "destination", "smac", "dmac", "time", "cpu"),
    *("fragment", "truncated", "mark", "uid", "gid", "flags", "type", "mss", "id", "payload"),
)


class _Words:
    """The words of the line with their columns."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [(m.group(), m.start() + 1) for m in re.finditer(r"\S+", text)]
        self.at = 0

    def error(self, message: str, *, back: int = 1, hint: str | None = None) -> ParseError:
        """Return an error at the word that was taken ``back`` words ago, or at the end of the line (0)."""
        index = self.at - back
        column = self.words[index][1] if index < len(self.words) else len(self.text) + 1
        return ParseError((Diagnostic(Origin(_NAME, 1, column, self.text), message, hint),))

    def take(self, what: str) -> str:
        """Return the next word; raises ParseError at the end."""
        self.at += 1
        if self.at > len(self.words):
            raise self.error(f"expected {what} here")
        return self.words[self.at - 1][0]

    @property
    def more(self) -> bool:
        """True if a word is left."""
        return self.at < len(self.words)


def parse_packet(text: str, node: Node, resolve: Resolve | None = None) -> Flow:
    """Return a flow of one packet; ParseError with the position of the fault.

    ``resolve`` finds the destination if it is the name of a service.
    """
    words = _Words(text)
    try:
        proto = parse_protocol(words.take("a protocol (udp, tcp, icmp, …)"))
    except ValueError as e:
        raise words.error(str(e)) from None
    family, src, sport = _endpoint(words, "a source address")
    if words.take("> between source and destination") not in (">", "->"):
        raise words.error("expected > between source and destination")
    other, dst, dport = _destination(words, proto, resolve)
    if other is not family:
        raise words.error("source and destination are of different families")
    if family is Family.IP6 and proto in EXTENSION_HEADERS:
        raise words.error(
            f"{proto} is an extension header of IPv6", hint="use the options of --packet", back=4
        )
    packet = Packet(family=family, src=src, dst=dst, proto=proto)
    if proto in PORT_PROTOCOLS:
        if dport is None:
            raise words.error("the destination has no port", hint="write it as ADDRESS:PORT")
        packet = replace(packet, sport=DEFAULT_SPORT if sport is None else sport, dport=dport)
    elif sport is not None or dport is not None:
        raise words.error("this protocol has no ports")
    if packet.is_icmp:
        kind, code = icmp_kinds(family)["echo-request"]
        packet = replace(packet, icmp_type=kind, icmp_code=code, icmp_id=1)
    entry: str | None = "auto"
    kept: tuple[int, str] | None = None
    while words.more:
        option = words.take("an option")
        if option == "bad-checksum":
            packet = replace(packet, bad_checksum=True)
            continue
        if option not in _WITH_VALUE:
            known = ", ".join((*_WITH_VALUE, "bad-checksum"))
            raise words.error(f"unknown option {option!r}", hint=f"known are {known}")
        value = words.take(f"a value for {option}")
        if option == "from" and value != "node":
            raise words.error("expected node after from")
        if option in ("in", "from"):
            entry = None if option == "from" or value == "-" else value
            continue
        if option == "truncated":
            kept = words.at, value
            continue
        packet = _with_option(words, packet, option, value)
    if kept is not None:
        packet = _truncated(words, packet, *kept)
    return _placed(words, packet, entry, node)


def _truncated(words: _Words, packet: Packet, at: int, text: str) -> Packet:
    """Return the packet without the end of its transport header; the option's value is word ``at``."""
    end, words.at = words.at, at
    length = _number(words, text, "length", LONGEST)
    if packet.payload or packet.filled_to or packet.bad_checksum or packet.fragment is not None:
        raise words.error("a truncated packet has no payload, length, checksum or fragment", back=2)
    try:
        packet = truncated(packet, length)
    except ValueError as e:
        raise words.error(str(e)) from None
    words.at = end
    return packet


def _destination(words: _Words, proto: int, resolve: Resolve | None) -> tuple[Family, int, int | None]:
    name = words.words[words.at][0] if words.more else ""
    if resolve is None or "/" not in name:
        return _endpoint(words, "a destination address")
    words.take("a destination")
    try:
        return resolve(name, protocol_name(proto))
    except ValueError as e:
        raise words.error(str(e)) from None


def _endpoint(words: _Words, what: str) -> tuple[Family, int, int | None]:
    text = words.take(what)
    address, port = text, None
    if match := re.fullmatch(r"\[([^]]*)\](?::(.*))?", text):
        address, port = match[1], match[2]
    elif text.count(":") == 1:
        address, port = text.split(":")
    try:
        family, value = parse_any_address(address)
    except ValueError:
        raise words.error(f"expected {what}, found {text!r}") from None
    if port is None:
        return family, value, None
    return family, value, _number(words, port, "port", 65535)


def _number(words: _Words, text: str, what: str, high: int) -> int:
    try:
        value = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        value = -1
    if not 0 <= value <= high:
        raise words.error(f"{text!r} is not a {what} (0-{high})")
    return value


def _mac(words: _Words, text: str) -> int:
    try:
        return parse_mac(text)
    except ValueError as e:
        raise words.error(str(e)) from None


def _with_option(words: _Words, packet: Packet, option: str, value: str) -> Packet:
    match option:
        case "ttl":
            return replace(packet, ttl=_number(words, value, "ttl", 255))
        case "tos":
            return replace(packet, tos=_number(words, value, "tos", 255))
        case "length":
            return replace(packet, filled_to=_number(words, value, "length", LONGEST))
        case "routing":
            parts = (*value.split("/"), "0", "0")
            if packet.family is Family.IP or len(parts) > 5:
                raise words.error("a routing header is TYPE/LEFT/LENGTH, in a packet of IPv6")
            routing = Routing(*(_number(words, part, "routing", 255) for part in parts[:3]))
            return replace(packet, routing=routing)
        case "hop" | "destination":
            units = _number(words, value, "length of options", LONGEST_OPTIONS)
            if packet.family is Family.IP:
                raise words.error("only packets of IPv6 have headers with options")
            if option == "hop":
                return replace(packet, hop_options=units)
            return replace(packet, destination_options=units)
        case "fragment":
            offset = _number(words, value, "offset", LAST_OFFSET)
            if (packet.proto, packet.family, offset) == (Protocol.TCP, Family.IP, 1):
                raise words.error("fragments of TCP at offset 1 are not simulated")
            made = replace(packet, fragment=Fragment(offset, more=not offset))
            return replace(made, sport=None, dport=None, icmp_type=None, icmp_id=None) if offset else made
        case "smac":
            return replace(packet, smac=_mac(words, value))
        case "dmac":
            return replace(packet, dmac=_mac(words, value))
        case "time":
            try:
                return replace(packet, time=time_from_text(value))
            except ValueError as e:
                raise words.error(str(e)) from None
        case "cpu":
            return replace(packet, cpu=_number(words, value, "processor", 0xFFFFFFFF))
        case "mark":
            return replace(packet, mark=_number(words, value, "mark", 0xFFFFFFFF))
        case "uid":
            return replace(packet, uid=_number(words, value, "user", 0xFFFFFFFE))
        case "gid":
            return replace(packet, gid=_number(words, value, "group", 0xFFFFFFFE))
        case "payload":
            try:
                return replace(packet, payload=bytes.fromhex(value))
            except ValueError:
                raise words.error("expected bytes in hexadecimal") from None
        case "mss":
            if packet.proto != Protocol.TCP:
                raise words.error("only tcp has mss", back=2)
            return replace(packet, mss=_number(words, value, "mss", 65535))
        case "flags":
            if packet.proto != Protocol.TCP:
                raise words.error("only tcp has flags", back=2)
            try:
                return replace(packet, flags=parse_flags(value))
            except ValueError as e:
                raise words.error(str(e)) from None
    if not packet.is_icmp:
        raise words.error(f"only icmp has {option}", back=2)
    if option == "id":
        return replace(packet, icmp_id=_number(words, value, "identifier", 65535))
    kind, _, code = value.partition("/")
    known = icmp_kinds(packet.family)
    icmp_type, icmp_code = known.get(value, (-1, 0))
    if icmp_type < 0:
        icmp_type, icmp_code = _number(words, kind, "type", 255), _number(words, code or "0", "code", 255)
    identifier = packet.icmp_id if icmp_has_identifier(packet.family, icmp_type) else None
    return replace(packet, icmp_type=icmp_type, icmp_code=icmp_code, icmp_id=identifier)


def _placed(words: _Words, packet: Packet, entry: str | None, node: Node) -> Flow:
    if entry == "auto":
        try:
            entry = entry_of(node, packet.family, packet.src)
        except ValueError as e:
            raise words.error(str(e), hint="name the interface where it enters: in IFACE", back=0) from None
    elif entry is not None and node.interface(entry) is None:
        names = ", ".join(i.name for i in node.interfaces)
        raise words.error(f"the node has no interface {entry!r}", hint=f"it has {names}")
    if packet.mark and entry is not None:
        raise words.error("only packets made on the node carry a mark", hint="add: from node")
    if (packet.uid or packet.gid) and entry is not None:
        raise words.error("only packets made on the node have an owner", hint="add: from node")
    if entry is None and packet.fragment is not None:
        raise words.error(
            "the node itself sends no fragments", hint="name the interface where it enters: in IFACE"
        )
    if entry is None and (packet.smac, packet.dmac) != (None, None):
        raise words.error("a packet made on the node has no frame", hint="leave out smac and dmac")
    return Flow(id="packet", steps=(Send(packet=packet, entry=entry),))
