"""The values that instructions load: of the packet, its header, its connection and the node."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tests.lab.bytecode.headers import network, transport
from tests.lab.bytecode.instructions import NumberGenerator
from tests.lab.bytecode.samples import EXTENSIONS, FRAGMENT, ROUTING, State
from translate.ir import ACCOUNTS, IPSEC_STATES, MOBILITY, Family, Field, Protocol, field_bits

__all__ = ["Loads", "NoMatch"]

_WORD: Final = 4
_SECOND: Final = 10**9  # of nft_meta_get_eval_time, in nanoseconds
_MILLISECONDS: Final = 1000
_MOST: Final = 0xFFFFFFFF
_NAME: Final = 16  # IFNAMSIZ
_RANDOM_BITS: Final = 31
_OF_SOCKET: Final = {
    "skuid": Field.SOCKET_UID,
    "skgid": Field.SOCKET_GID,
    "cgroup": Field.SOCKET_CLASS,
    "socket transparent": Field.TAKER_TRANSPARENT,
    "socket wildcard": Field.TAKER_WILDCARD,
}
_IPSEC: Final = {field.text: field for field in IPSEC_STATES}
_ETHERNET, _LOOPBACK = 1, 772
"""Types of devices (``ARPHRD_*``)."""

_CONNECTION: Final[Mapping[tuple[str, str | None], Field]] = {
    ("status", None): Field.CT_STATUS,
    ("expiration", None): Field.CT_EXPIRES,
    ("direction", None): Field.CT_DIRECTION,
    ("protocol", "original"): Field.CT_PROTO,
    **{
        (key, direction): Field[f"CT_{'' if direction is None else direction.upper() + '_'}{name}"]
        for direction in (None, "original", "reply")
        for key, name in (("packets", "PACKETS"), ("bytes", "BYTES"), ("avgpkt", "AVERAGE"))
    },
    **{
        (key, direction): Field[f"CT_{direction.upper()}_{name}"]
        for direction in ("original", "reply")
        for key, name in (
            *(("saddr", "SADDR"), ("daddr", "DADDR")),
            *(("proto-src", "SPORT"), ("proto-dst", "DPORT")),
        )
    },
}
_ROUTES_BACK: Final = {
    "saddr . iif": Field.REVERSE_PATH,
    "saddr . mark . iif": Field.REVERSE_PATH_BY_MARK,
    "saddr": Field.REVERSE_ROUTE,
    "saddr . mark": Field.REVERSE_ROUTE_BY_MARK,
}
_FIB: Final = {
    f"{side}{device}": Field[f"FIB_{side.upper()}_TYPE{suffix}"]
    for side in ("saddr", "daddr")
    for device, suffix in (("", ""), (" . iif", "_IIF"), (" . oif", "_OIF"))
}


class NoMatch(Exception):  # noqa: N818  # NFT_BREAK: the rule ends, and the next one begins
    """The rule does not match."""


@dataclass(frozen=True, slots=True)
class Loads:
    """The loading instructions for one packet; they raise NoMatch for a value that it does not have."""

    state: State

    def meta(self, key: str) -> bytes:
        """Return the value of a ``meta`` key."""
        sample = self.state.sample
        match key:
            case "l4proto":
                return _number(sample.number(Field.L4PROTO), 1)
            case "mark":
                return _number(self.state.mark, _WORD)
            case "secmark":
                return _number(self.state.label, _WORD)
            case "len":
                return _number(sample.number(Field.LENGTH), _WORD)
            case "time":
                return _number(sample.number(Field.CLOCK) * _SECOND + sample.fraction, 8)
            case "hour":
                return _number(sample.number(Field.CLOCK_DAYTIME), _WORD)
            case "day":
                return _number(sample.number(Field.CLOCK_WEEKDAY), 1)
            case "pkttype":
                return _number(sample.number(Field.PACKET_TYPE), 1)
            case "iiftype":
                return _number(_ETHERNET if sample.ether else _LOOPBACK, 2)
            case "iifname" | "oifname":
                name = sample.values[Field.IIF if key == "iifname" else Field.OIF]
                assert isinstance(name, str)
                return name.encode().ljust(_NAME, b"\0")
            case "cpu":
                return _number(sample.number(Field.CPU), _WORD)
            case "iifgroup" | "oifgroup":
                return _number(self.present(Field.IIF_GROUP if key == "iifgroup" else Field.OIF_GROUP), _WORD)
            case "skuid" | "skgid" | "cgroup":
                return _number(self.present(_OF_SOCKET[key]), _WORD)
            case "socket transparent" | "socket wildcard":
                return _number(self.present(_OF_SOCKET[key]), 1)
            case "socket mark":
                if self.state.socket_mark is None:
                    raise NoMatch
                return _number(self.state.socket_mark, _WORD)
            case "rt classid":
                return _number(sample.number(Field.REALM), _WORD)
            case "ipsec" | "rt ipsec":
                return _number(sample.number(Field.IPSEC_IN if key == "ipsec" else Field.IPSEC_OUT), 1)
            case _ if key in _IPSEC:
                value, order = self.present(_IPSEC[key]), sys.byteorder if key.endswith("reqid") else "big"
                return value.to_bytes(_WORD, order)
            case "iifkind":
                if sample.kind is None:
                    raise NoMatch
                return sample.kind.encode().ljust(_NAME, b"\0")
            case _:
                raise ValueError(f"meta {key} is not known")

    def present(self, field: Field) -> int:
        """Return the number in a field that not every packet has."""
        value = self.state.get(field)
        if not isinstance(value, int):
            raise NoMatch
        return value

    def payload(self, base: str, offset: int, length: int) -> bytes:
        """``payload``: bytes of a header."""
        sample = self.state.sample
        if base == "transport":
            if sample.fragment and not _is_fast(offset, length):
                raise NoMatch
            # nft_payload_fast_eval: data of an IPv4 fragment, or the header of IPv6 itself.
            misread = sample.fragment and sample.family is Family.IP6
            return _part((network if misread else transport)(self.state), offset, length)
        if base == "link":
            if not sample.ether:
                raise NoMatch
            frame = bytes(6) + sample.number(Field.ETHER_SADDR).to_bytes(6, "big") + bytes(2)
            return frame[offset : offset + length]
        return _part(network(self.state) + transport(self.state), offset, length)

    def chunks(self) -> int | str | None:
        """Return the chunks of a packet of SCTP; in IPv4 also those in the data of a later fragment
        (``nft_exthdr_sctp_eval``).
        """
        sample = self.state.sample
        misread = sample.fragment and sample.family is Family.IP
        if misread and sample.number(Field.L4PROTO) == Protocol.SCTP:
            return sample.number(Field.SCTP_CHUNKS)
        return self.state.get(Field.SCTP_CHUNKS)

    def extension(self, kind: int) -> bytes:
        """``exthdr``: an extension header of IPv6."""
        fields = EXTENSIONS[kind]
        if self.state.get(fields[0]) is None:
            raise NoMatch
        if kind == ROUTING:
            return b"".join(
                self.state.sample.number(field).to_bytes(field_bits(field, Family.IP6) // 8, "big")
                for field in fields
                if field is not Field.ROUTING_IN_ORDER
            )
        parts = [self.state.sample.number(field) for field in fields]
        if kind == MOBILITY:
            return bytes((parts[0], 0, parts[1]))
        if kind != FRAGMENT:
            return bytes((0, *parts))
        identification, offset, more, reserved, reserved2 = parts
        where = offset << 3 | reserved2 << 1 | more
        return bytes((0, reserved)) + where.to_bytes(2, "big") + identification.to_bytes(4, "big")

    def ct(self, key: str, direction: str | None) -> bytes:
        """Return the value of a ``ct`` key."""
        state = self.state
        if key == "state":
            return _number(state.tracked, _WORD)
        if not state.has_entry:
            raise NoMatch
        if key == "mark":
            return _number(state.connmark, _WORD)
        if key == "secmark":
            return _number(state.connlabel, _WORD)
        if key == "helper":
            name = state.get(Field.CT_HELPER)
            if not isinstance(name, str):
                raise NoMatch
            return name.encode().ljust(_NAME, b"\0")
        field = _CONNECTION[key, direction]
        value = state.sample.number(field)
        if field.is_address:
            return value.to_bytes(state.sample.family.bits // 8, "big")
        if field is Field.CT_STATUS:
            return _number(value, _WORD)
        if field is Field.CT_EXPIRES:
            milliseconds = value * _MILLISECONDS + state.sample.fraction * _MILLISECONDS // _SECOND
            return _number(milliseconds & _MOST, _WORD)
        if field in ACCOUNTS:
            return _number(value, 8)
        width = (field.bits or 8) + 7 >> 3
        return value.to_bytes(width, "big")

    def fib(self, flags: str, result: str) -> bytes:
        """Return the result of a ``fib`` expression."""
        sample = self.state.sample
        if result == "oif present":
            return _number(sample.number(_ROUTES_BACK[flags]), 1)
        return _number(sample.address_type(_FIB[flags]), _WORD)

    def number(self, generator: NumberGenerator) -> bytes:
        """Return the number of a ``numgen`` expression."""
        sample = self.state.sample
        if generator.kind == "inc":
            self.state.note("count up", generator.modulus)
            return _number(sample.count % generator.modulus + generator.offset, _WORD)
        # nft_ng_random_gen: reciprocal_scale
        return _number((sample.draw * generator.modulus >> _RANDOM_BITS) + generator.offset, _WORD)


def _number(value: int, width: int) -> bytes:
    """Return a number in the byte order in which nf_tables stores values that are not from a header."""
    return int(value).to_bytes(width, sys.byteorder)


def _is_fast(offset: int, length: int) -> bool:
    """Return whether nft_payload_fast_eval evaluates a load (``nft_payload_select_ops``)."""
    return length in (1, 2, 4) and offset % length == 0


def _part(header: bytes, offset: int, length: int) -> bytes:
    if offset + length > len(header):
        raise NoMatch
    return header[offset : offset + length]
