"""A packet as JSON: the part of the JSON Lines format that describes one packet.

Used for the flow itself, for ``{"send": …}`` and for the packet quoted in an ICMP error.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from backends.model.clock import time_from_text, time_to_text
from backends.model.packet import DEFAULT_TTL, EXTENSION_HEADERS, TRANSPORT_HEADERS, Fragment, Packet, Routing
from translate.dataclass import replace
from translate.ir import PORT_PROTOCOLS, Family, Protocol, TcpFlag, format_address, format_mac, parse_mac
from translate.jsoninput import MISSING, JsonObject

__all__ = [
    "LAST_OFFSET",
    "LONGEST",
    "LONGEST_OPTIONS",
    "flags_to_text",
    "icmp_has_identifier",
    "icmp_kinds",
    "packet_fields",
    "parse_flags",
    "parse_protocol",
    "protocol_name",
    "read_packet",
]

LONGEST: Final = 1500
"""The MTU of the node's devices, in bytes."""

LAST_OFFSET: Final = 8000
"""The greatest offset of a fragment, in units of 8 bytes: every fragment there ends before 65,536 bytes."""

LONGEST_OPTIONS: Final = 31
"""The length of a header with the longest option, in units of 8 bytes after the first one."""

_LETTERS: Final = (
    ("S", TcpFlag.SYN),
    ("F", TcpFlag.FIN),
    ("R", TcpFlag.RST),
    ("P", TcpFlag.PSH),
    ("U", TcpFlag.URG),
    ("A", TcpFlag.ACK),
    ("E", TcpFlag.ECE),
    ("W", TcpFlag.CWR),
)

_ICMP: Final = {
    "echo-reply": (0, 0),
    "net-unreachable": (3, 0),
    "host-unreachable": (3, 1),
    "protocol-unreachable": (3, 2),
    "port-unreachable": (3, 3),
    "fragmentation-needed": (3, 4),
    "admin-prohibited": (3, 13),
    "redirect": (5, 1),
    "echo-request": (8, 0),
    "ttl-exceeded": (11, 0),
    "parameter-problem": (12, 0),
    "timestamp-request": (13, 0),
    "timestamp-reply": (14, 0),
}
_ICMP6: Final = {
    "no-route": (1, 0),
    "admin-prohibited": (1, 1),
    "address-unreachable": (1, 3),
    "port-unreachable": (1, 4),
    "packet-too-big": (2, 0),
    "ttl-exceeded": (3, 0),
    "parameter-problem": (4, 0),
    "echo-request": (128, 0),
    "echo-reply": (129, 0),
}
# RFC 792 queries and their answers contain an identifier, and so do the echo messages of RFC 4443.
_IDENTIFIED: Final = {Family.IP: frozenset({0, 8, 13, 14, 15, 16, 17, 18}), Family.IP6: frozenset({128, 129})}


def icmp_kinds(family: Family) -> dict[str, tuple[int, int]]:
    """Return the names of ICMP messages that corpora may use, with type and code."""
    return _ICMP if family is Family.IP else _ICMP6


def icmp_has_identifier(family: Family, icmp_type: int) -> bool:
    """Return whether messages of this type are queries or answers with an identifier."""
    return icmp_type in _IDENTIFIED[family]


def parse_protocol(text: str) -> int:
    """Return a protocol's number from its name or its decimal number; ValueError otherwise."""
    name = text.upper().replace("IPV6-ICMP", "ICMPV6").replace("ICMP6", "ICMPV6")
    if name in Protocol.__members__:
        return int(Protocol[name])
    digits = text.removeprefix("proto-")
    if digits.isascii() and digits.isdigit() and int(digits) <= 255:
        return int(digits)
    known = ", ".join(p.name.lower() for p in Protocol)
    raise ValueError(f"unknown protocol {text!r}; known are {known} and numbers up to 255")


@functools.cache
def protocol_name(proto: int) -> str:
    """Return the protocol's name, or its number as text."""
    try:
        return Protocol(proto).name.lower()
    except ValueError:
        return str(proto)


def parse_flags(text: str) -> TcpFlag:
    """Return TCP flags from letters (``SA``) or names (``SYN,ACK``); ValueError otherwise."""
    flags = TcpFlag(0)
    letters = dict(_LETTERS)
    if text == "":
        return flags
    names = text.upper().split(",")
    if all(n in TcpFlag.__members__ for n in names):
        for name in names:
            flags |= TcpFlag[name]
        return flags
    for letter in text:
        if letter not in letters:
            raise ValueError(f"{text!r} are not TCP flags; use letters of SFRPUAEW or names like SYN,ACK")
        flags |= letters[letter]
    return flags


@functools.cache
def flags_to_text(flags: TcpFlag) -> str:
    """Return the flags as letters, in the order SFRPUAEW (those of tcpdump)."""
    return "".join(letter for letter, flag in _LETTERS if flags & flag)


def _read_icmp(obj: JsonObject, family: Family) -> tuple[int, int]:
    kinds = icmp_kinds(family)
    value = obj.take("icmp")
    if value is MISSING:
        return kinds["echo-request"]
    if isinstance(value, str):
        if value in kinds:
            return kinds[value]
        obj.problem("icmp", f"unknown ICMP message {value!r}", f"known are {', '.join(kinds)}")
    elif isinstance(value, dict):
        inner = obj.child("icmp", value)
        kind = inner.integer("type", None, low=0, high=255)
        code = inner.integer("code", 0, low=0, high=255)
        inner.finish()
        if kind is not None:
            return kind, code
        if not inner.has("type"):
            inner.problem(None, "type is missing")
    else:
        obj.problem("icmp", 'expected a name or {"type": …, "code": …}')
    return kinds["echo-request"]


def _read_protocol(obj: JsonObject, family: Family) -> int | None:
    value = obj.take("proto")
    if isinstance(value, bool) or not isinstance(value, str | int):
        obj.problem("proto" if value is not MISSING else None, "proto is missing or not a protocol")
        return None
    try:
        proto = parse_protocol(str(value))
    except ValueError as e:
        obj.problem("proto", str(e))
        return None
    wrong = {Family.IP: Protocol.ICMPV6, Family.IP6: Protocol.ICMP}[family]
    if proto == wrong:
        obj.problem("proto", f"{protocol_name(proto)} does not exist in IPv{family.version}")
        return None
    if family is Family.IP6 and proto in EXTENSION_HEADERS:
        obj.problem("proto", f"{proto} is an extension header of IPv6, not a protocol")
        return None
    return proto


def _read_mac(obj: JsonObject, key: str) -> int | None:
    text = obj.text(key, None)
    try:
        return None if text is None else parse_mac(text)
    except ValueError as e:
        obj.problem(key, str(e))
        return None


def _read_time(obj: JsonObject) -> int | None:
    text = obj.text("time", None)
    try:
        return None if text is None else time_from_text(text)
    except ValueError as e:
        obj.problem("time", str(e))
        return None


def _read_routing(obj: JsonObject, family: Family) -> Routing | None:
    value = obj.take("routing")
    if value is MISSING:
        return None
    if not isinstance(value, dict) or family is Family.IP:
        obj.problem("routing", 'expected {"type": …, "left": …, "length": …}, in a packet of IPv6')
        return None
    inner = obj.child("routing", value)
    parts = [inner.integer(name, 0, low=0, high=255) for name in Routing._fields]
    inner.finish()
    return Routing(*(part or 0 for part in parts))


def _read_fragment(obj: JsonObject, family: Family, proto: int | None) -> Fragment | None:
    value = obj.take("fragment")
    if value is MISSING:
        return None
    if not isinstance(value, dict):
        obj.problem("fragment", 'expected {"offset": …, "more": …, "id": …}')
        return None
    inner = obj.child("fragment", value)
    offset = inner.integer("offset", 0, low=0, high=LAST_OFFSET) or 0
    more = inner.flag("more")
    ident = inner.integer("id", None, low=0, high=0xFFFF if family is Family.IP else 0xFFFFFFFF)
    reserved = inner.integer("reserved", 0, low=0, high=0xFF) or 0
    inner.finish()
    if not offset and not more:
        obj.problem("fragment", "it is a whole packet", 'give it an offset, or "more": true')
    if reserved and family is Family.IP:
        obj.problem("fragment", "only the fragment header of IPv6 has a reserved byte")
    if (family, proto, offset) == (Family.IP, Protocol.TCP, 1):
        # tcp_mt drops it ("hotdrop"), wherever a rule of iptables tests for a port or flags.
        obj.problem("fragment", "fragments of TCP at offset 1 are not simulated")
    return Fragment(offset, more, ident, reserved)


def _check_truncated(obj: JsonObject, family: Family, proto: int | None, payload: bytes) -> None:
    """Report what does not fit to a packet that ends within its transport header."""
    whole = TRANSPORT_HEADERS.get((family, -1 if proto is None else proto), 0)
    if len(payload) >= whole:
        reason = f"its header has {whole} bytes" if whole else "no header of this protocol is known"
        obj.problem(
            "truncated", f"a payload of {len(payload)} bytes does not end within the header: {reason}"
        )
    for key in ("fragment", "length", "bad_checksum"):
        if obj.has(key):
            obj.problem(key, "a packet that ends within its transport header cannot have it")


def _read_options(obj: JsonObject, key: str, family: Family) -> int | None:
    units = obj.integer(key, None, low=0, high=LONGEST_OPTIONS)
    if units is not None and family is Family.IP:
        obj.problem(key, "only packets of IPv6 have headers with options")
    return units


def read_packet(obj: JsonObject, *, quotable: bool = True) -> Packet | None:
    """Return the packet that the keys of ``obj`` describe; None when they are wrong.

    ``quotable``: the packet may quote another packet. The caller calls ``obj.finish``.
    """
    pair = (obj.address("src"), obj.address("dst"))
    for key, address in zip(("src", "dst"), pair, strict=True):
        if address is None and not obj.has(key):
            obj.problem(None, f"{key} is missing")
    src, dst = pair
    family = src[0] if src is not None else Family.IP
    if src is not None and dst is not None and src[0] is not dst[0]:
        obj.problem("dst", "src and dst are of different families")
    proto = _read_protocol(obj, family)
    ttl = obj.integer("ttl", DEFAULT_TTL, low=1, high=255)
    mark = obj.integer("mark", 0, low=0, high=0xFFFFFFFF)
    uid, gid = (obj.integer(key, 0, low=0, high=0xFFFFFFFE) for key in ("uid", "gid"))
    bad_checksum = obj.flag("bad_checksum")
    tos = obj.integer("tos", 0, low=0, high=255)
    filled_to = obj.integer("length", 0, low=20, high=LONGEST)
    smac, dmac = _read_mac(obj, "smac"), _read_mac(obj, "dmac")
    routing = _read_routing(obj, family)
    options = [_read_options(obj, key, family) for key in ("hop_options", "destination_options")]
    fragment = _read_fragment(obj, family, proto)
    later = fragment is not None and fragment.offset != 0
    time = _read_time(obj)
    cpu = obj.integer("cpu", 0, low=0, high=0xFFFFFFFF)
    payload = b""
    text = obj.text("payload", "")
    try:
        payload = bytes.fromhex(text)
    except ValueError:
        obj.problem("payload", "expected bytes in hexadecimal")
    fields: dict[str, Any] = {}
    truncated = obj.flag("truncated")
    if truncated:
        _check_truncated(obj, family, proto, payload)
    headless = later or truncated
    if later and options[1] is not None:
        obj.problem("destination_options", "a later fragment has no header but the fragment header")
    if proto in PORT_PROTOCOLS and not headless:
        for key in ("sport", "dport"):
            fields[key] = obj.integer(key, None, low=0, high=65535)
            if not obj.has(key):
                obj.problem(None, f"{key} is missing")
    if proto == Protocol.TCP and not headless:
        fields["seq"] = obj.integer("seq", 0, low=0, high=0xFFFFFFFF)
        fields["ack"] = obj.integer("ack", 0, low=0, high=0xFFFFFFFF)
        try:
            fields["flags"] = parse_flags(obj.text("flags", "S"))
        except ValueError as e:
            obj.problem("flags", str(e))
        if obj.has("mss"):
            fields["mss"] = obj.integer("mss", None, low=0, high=65535)
    if proto in (Protocol.ICMP, Protocol.ICMPV6) and not headless:
        kind, code = _read_icmp(obj, family)
        fields["icmp_type"], fields["icmp_code"] = kind, code
        if icmp_has_identifier(family, kind):
            fields["icmp_id"] = obj.integer("icmp_id", 1, low=0, high=65535)
        elif quotable and obj.has("quoted"):
            quoted = obj.take("quoted")
            if isinstance(quoted, dict):
                inner = obj.child("quoted", quoted)
                fields["quoted"] = read_packet(inner, quotable=False)
                inner.finish()
            else:
                obj.problem("quoted", "expected the packet inside the error, as an object")
    if not obj.ok or src is None or dst is None or proto is None:
        return None
    packet = Packet(
        family=family,
        src=src[1],
        dst=dst[1],
        proto=proto,
        ttl=ttl,
        mark=mark,
        uid=uid,
        gid=gid,
        payload=payload,
        bad_checksum=bad_checksum,
        tos=tos,
        filled_to=filled_to,
        smac=smac,
        dmac=dmac,
        routing=routing,
        hop_options=options[0],
        destination_options=options[1],
        fragment=fragment,
        truncated=truncated,
        time=time,
        cpu=cpu,
    )
    return replace(packet, **fields)


def packet_fields(packet: Packet) -> dict[str, object]:
    """Return the packet in the form that :func:`read_packet` reads, defaults left out."""
    out: dict[str, object] = {
        "src": format_address(packet.family, packet.src),
        "dst": format_address(packet.family, packet.dst),
        "proto": protocol_name(packet.proto),
    }
    if packet.has_ports:
        out["sport"], out["dport"] = packet.sport, packet.dport
    if packet.proto == Protocol.TCP and not packet.is_headless:
        if packet.flags != TcpFlag.SYN:
            out["flags"] = flags_to_text(packet.flags)
        out.update({k: v for k, v in (("seq", packet.seq), ("ack", packet.ack)) if v})
        if packet.mss is not None:
            out["mss"] = packet.mss
    if packet.is_icmp:
        kind = (packet.icmp_type or 0, packet.icmp_code or 0)
        names = {v: k for k, v in icmp_kinds(packet.family).items()}
        out["icmp"] = names.get(kind, {"type": kind[0], "code": kind[1]})
        if icmp_has_identifier(packet.family, kind[0]) and packet.icmp_id is not None:
            out["icmp_id"] = packet.icmp_id
        if packet.quoted is not None:
            out["quoted"] = packet_fields(packet.quoted)
    if packet.ttl != DEFAULT_TTL:
        out["ttl"] = packet.ttl
    if packet.mark:
        out["mark"] = packet.mark
    out.update({k: v for k, v in (("uid", packet.uid), ("gid", packet.gid)) if v})
    if packet.payload:
        out["payload"] = packet.payload.hex()
    if packet.bad_checksum:
        out["bad_checksum"] = True
    if packet.tos:
        out["tos"] = packet.tos
    if packet.filled_to:
        out["length"] = packet.filled_to
    if packet.routing is not None:
        out["routing"] = packet.routing._asdict()
    if packet.fragment is not None:
        parts = packet.fragment._asdict().items()
        out["fragment"] = {key: part for key, part in parts if part not in (None, 0)}
    if packet.truncated:
        out["truncated"] = True
    lengths = zip(("hop_options", "destination_options"), packet.option_headers, strict=True)
    out.update({key: units for key, units in lengths if units is not None})
    if packet.time is not None:
        out["time"] = time_to_text(packet.time)
    if packet.cpu:
        out["cpu"] = packet.cpu
    out.update({k: format_mac(v) for k, v in (("smac", packet.smac), ("dmac", packet.dmac)) if v is not None})
    return out
