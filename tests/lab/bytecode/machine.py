"""Execution of a chain's rules on one packet, as in ``nft_do_chain``."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from tests.lab.bytecode.headers import network, transport
from tests.lab.bytecode.instructions import (
    PATH_MSS,
    Bitwise,
    Byteorder,
    Compare,
    Constant,
    Count,
    Decide,
    HandOver,
    Help,
    Instruction,
    LoadCt,
    LoadExtension,
    LoadFib,
    LoadMeta,
    LoadPayload,
    LoadRoute,
    LoadTcpOption,
    Log,
    LookUp,
    Nat,
    NoTrack,
    NumberGenerator,
    Range,
    Reject,
    SetCtMark,
    SetCtZone,
    SetMeta,
    SetTcpOption,
    StorePayload,
    StripTcpOption,
    Take,
    TransparentProxy,
    UpdateSet,
    Verdict,
)
from tests.lab.bytecode.listing import Listing
from tests.lab.bytecode.samples import EXTENSIONS, FRAGMENT, State
from translate.ir import ACCOUNTS, ConnectionState, Family, Field

__all__ = ["Names", "RecentSet", "run"]

_WORD: Final = 4
_SECOND: Final = 10**9  # of nft_meta_get_eval_time, in nanoseconds
_NAME: Final = 16  # IFNAMSIZ
_RANDOM_BITS: Final = 31
_OF_SOCKET: Final = {
    "skuid": Field.SOCKET_UID,
    "skgid": Field.SOCKET_GID,
    "cgroup": Field.SOCKET_CLASS,
    "socket transparent": Field.TAKER_TRANSPARENT,
    "socket wildcard": Field.TAKER_WILDCARD,
}
_NETMAP: Final = 0x40  # NF_NAT_RANGE_NETMAP
_NAT_OPTIONS: Final = 0x1C  # NF_NAT_RANGE_PROTO_RANDOM, _PERSISTENT, _PROTO_RANDOM_FULLY


@dataclass(frozen=True, slots=True)
class RecentSet:
    """A set that stands for a list of ``-m recent``, and its timeout in seconds."""

    list: str
    timeout: int | None


@dataclass(frozen=True, slots=True)
class Names:
    """The objects behind nft's names: chains that are not run, counters, limits, sets of ``-m recent``.

    ``limits`` has quotas as well, and ``over`` those that hold only when they are exceeded.
    ``lists`` are the names of all lists, in order.
    """

    chains: Mapping[str, str]
    counters: Mapping[str, str]
    limits: Mapping[str, str]
    over: frozenset[str]
    hashed: Mapping[str, str]
    sets: Mapping[str, RecentSet]
    lists: tuple[str, ...]


def _part(header: bytes, offset: int, length: int) -> bytes:
    if offset + length > len(header):
        raise _Break
    return header[offset : offset + length]


class _Break(Exception):  # noqa: N818  # NFT_BREAK: the rule ends, and the next one begins
    """The rule does not match."""


def run(listing: Listing, chain: str, state: State, names: Names) -> None:
    """Run a chain on ``state``, which records the effects. Calls of chains in ``names`` are only recorded."""
    _Run(listing, state, names).chain(chain)


@dataclass(slots=True)
class _Run:
    listing: Listing
    state: State
    names: Names

    def chain(self, name: str) -> bool:
        """Run a chain; return whether the packet comes back to the caller."""
        for rule in self.listing.rules.get(name, []):
            decided = _Rule(self).run(rule)
            if decided is None or decided.kind == "continue":
                continue
            match decided.kind:
                case "return":
                    return True
                case "jump" | "goto":
                    goes_on = self._call(decided.chain or "")
                    if decided.kind == "goto" or not goes_on:
                        return goes_on
                case kind:
                    if kind != "done":
                        self.state.note(kind)
                    return False
        return True

    def _call(self, chain: str) -> bool:
        known = self.names.chains.get(chain)
        if known is None:
            return self.chain(chain)
        self.state.note("call", known)
        return True


_DONE: Final = Verdict("done")
"""A statement has ended the walk through the table, and its verdict is recorded."""


class _Rule:
    """The sixteen 32-bit registers of one rule. Loaded data is padded with zeros to whole words."""

    def __init__(self, whole: _Run) -> None:
        self._whole = whole
        self._state = whole.state
        self._bytes = bytearray(16 * _WORD)

    def run(self, rule: tuple[Instruction, ...]) -> Verdict | None:
        """Run a rule and return its verdict; None if it does not match or has no verdict."""
        try:
            for instruction in rule:
                decided = self._step(instruction)
                if decided is not None:
                    return decided
        except _Break:
            pass
        return None

    def _step(self, instruction: Instruction) -> Verdict | None:
        match instruction:
            case LoadMeta(key=key, target=target):
                self._put(target, self._meta(key))
            case LoadPayload(base=base, offset=offset, length=length, target=target):
                self._put(target, self._payload(base, offset, length))
            case LoadExtension(kind=kind, offset=offset, length=length, target=target):
                self._put(target, self._extension(kind)[offset : offset + length])
            case LoadTcpOption(kind=kind, target=target, presence=True):
                kinds = self._state.get(Field.TCP_OPTIONS)
                self._put(target, bytes([isinstance(kinds, int) and kinds >> kind & 1]))
            case LoadTcpOption(kind=2, offset=2, length=2, target=target):
                self._put(target, self._present(Field.TCP_MSS).to_bytes(2, "big"))
            case LoadTcpOption():
                raise AssertionError(instruction)
            case LoadCt(key=key, direction=direction, target=target):
                self._put(target, self._ct(key, direction))
            case LoadFib(flags=flags, result=result, target=target):
                self._put(target, self._fib(flags, result))
            case NumberGenerator():
                self._put(instruction.target, self._number(instruction))
            case Constant(data=data, target=target):
                self._put(target, data)
            case Bitwise(source=source, target=target, mask=mask, xor=xor):
                columns = zip(self._get(source, len(mask)), mask, xor, strict=True)
                self._put(target, bytes(value & kept ^ flipped for value, kept, flipped in columns))
            case Byteorder(source=source, target=target, size=size, length=length):
                whole = self._get(source, length)
                parts = [whole[i : i + size] for i in range(0, length, size)]
                self._put(target, b"".join(p[::-1] if sys.byteorder == "little" else p for p in parts))
            case Compare(operator=compare, register=register, data=data):
                if not _COMPARISONS[compare](self._get(register, len(data)), data):
                    raise _Break
            case Range(negated=negated, register=register, low=low, high=high):
                if (low <= self._get(register, len(low)) <= high) is negated:
                    raise _Break
            case LookUp():
                return self._look_up(instruction)
            case UpdateSet():
                self._update(instruction)
            case Count(name=name):
                self._state.note("count", self._whole.names.counters[name])
            case Help(name=name):
                self._state.note("helper", name)
            case Take(name=name):
                self._state.note("take", self._whole.names.limits[name])
                if self._state.sample.within is (name in self._whole.names.over):
                    raise _Break
            case SetMeta(key="nftrace", register=register):
                self._state.note("nftrace", self._get(register, 1)[0])
            case SetMeta(key="priority", register=register):
                self._state.note("priority", int.from_bytes(self._get(register, _WORD), sys.byteorder))
            case SetMeta(register=register):
                self._state.mark = int.from_bytes(self._get(register, _WORD), sys.byteorder)
            case SetCtMark(register=register):
                if self._state.has_entry:
                    self._state.connmark = int.from_bytes(self._get(register, _WORD), sys.byteorder)
            case TransparentProxy(address=address, port=port):
                width = self._state.sample.family.bits // 8
                self._state.note(
                    "proxy",
                    None if address is None else int.from_bytes(self._get(address, width), "big"),
                    None if port is None else int.from_bytes(self._get(port, 2), "big"),
                )
            case HandOver(first=first, total=total, flags=flags):
                self._state.note("queue", first, total, flags)
                return _DONE
            case StripTcpOption(kind=kind):
                self._state.note("strip", kind)
            case LoadRoute(target=target):
                self._put(target, PATH_MSS.to_bytes(2, sys.byteorder))
            case SetTcpOption(kind=2, offset=2, length=2, register=register):
                self._state.note("mss", int.from_bytes(self._get(register, 2), "big"))
            case SetTcpOption():
                raise AssertionError(instruction)
            case SetCtZone(direction=direction, register=register):
                if not self._state.has_entry:
                    zone = int.from_bytes(self._get(register, 2), sys.byteorder)
                    self._state.note("zone", direction, zone)
                    self._state.tracked = ConnectionState.NEW
            case StorePayload():
                self._store(instruction)
            case Decide(verdict=decided):
                return decided
            case Nat():
                self._translate(instruction)
                return _DONE
            case Reject(kind=kind, code=code):
                self._state.note("reject", kind, code)
                return _DONE
            case Log():
                self._state.note("log", instruction)
            case NoTrack():
                self._state.tracked = ConnectionState.UNTRACKED
            case _:
                assert_never(instruction)
        return None

    # -- registers -------------------------------------------------------------------------------

    @staticmethod
    def _at(register: int) -> int:
        return (register - 1) * 4 * _WORD if register < 8 else (register - 8) * _WORD

    def _put(self, register: int, data: bytes) -> None:
        at = self._at(register)
        width = -(-len(data) // _WORD) * _WORD
        self._bytes[at : at + width] = data.ljust(width, b"\0")

    def _get(self, register: int, length: int) -> bytes:
        at = self._at(register)
        return bytes(self._bytes[at : at + length])

    def _look_up(self, lookup: LookUp) -> Verdict | None:
        contents = self._whole.listing.sets[lookup.set]
        key = self._get(lookup.register, contents.width)
        recent = self._whole.names.sets.get(contents.name)
        data: Verdict | bytes | None = None
        if recent is not None:
            matches = self._state.has_seen(recent.list, recent.timeout, key, self._whole.names.lists)
        else:
            matches, data = contents.find(key)
        if matches is lookup.negated:
            raise _Break
        if lookup.target is None:
            return None
        if isinstance(data, Verdict):
            return data
        assert data is not None
        self._put(lookup.target, data)
        return None

    def _update(self, update: UpdateSet) -> None:
        contents = self._whole.listing.sets[update.set]
        if update.over is not None:
            counted = () if update.limit is None else (update.limit,)
            self._state.note("take", self._whole.names.hashed[contents.name], *counted)
            if self._state.sample.within is update.over:
                raise _Break
            return
        known = self._whole.names.sets[contents.name]
        key = self._get(update.register, contents.width)
        self._state.listed[known.list, known.timeout, key] = update.operation != "delete"

    # -- what is loaded --------------------------------------------------------------------------

    def _meta(self, key: str) -> bytes:
        sample = self._state.sample
        match key:
            case "l4proto":
                return _number(sample.number(Field.L4PROTO), 1)
            case "mark":
                return _number(self._state.mark, _WORD)
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
                return _number(
                    self._present(Field.IIF_GROUP if key == "iifgroup" else Field.OIF_GROUP), _WORD
                )
            case "skuid" | "skgid" | "cgroup":
                return _number(self._present(_OF_SOCKET[key]), _WORD)
            case "socket transparent" | "socket wildcard":
                return _number(self._present(_OF_SOCKET[key]), 1)
            case "ipsec" | "rt ipsec":
                return _number(sample.number(Field.IPSEC_IN if key == "ipsec" else Field.IPSEC_OUT), 1)
            case "iifkind":
                if sample.kind is None:
                    raise _Break
                return sample.kind.encode().ljust(_NAME, b"\0")
            case _:
                raise ValueError(f"meta {key} is not known")

    def _present(self, field: Field) -> int:
        value = self._state.get(field)
        if not isinstance(value, int):
            raise _Break
        return value

    def _payload(self, base: str, offset: int, length: int) -> bytes:
        sample = self._state.sample
        if base == "transport":
            if sample.fragment:
                raise _Break
            return _part(transport(self._state), offset, length)
        if base == "link":
            if not sample.ether:
                raise _Break
            frame = bytes(6) + sample.number(Field.ETHER_SADDR).to_bytes(6, "big") + bytes(2)
            return frame[offset : offset + length]
        return _part(network(self._state), offset, length)

    def _extension(self, kind: int) -> bytes:
        fields = EXTENSIONS[kind]
        if self._state.get(fields[0]) is None:
            raise _Break
        parts = [self._state.sample.number(field) for field in fields]
        if kind != FRAGMENT:
            return bytes((0, *parts))
        identification, offset, more, reserved, reserved2 = parts
        where = offset << 3 | reserved2 << 1 | more
        return bytes((0, reserved)) + where.to_bytes(2, "big") + identification.to_bytes(4, "big")

    def _store(self, store: StorePayload) -> None:
        """Write a TOS or a TTL; a change of any other byte of the header is recorded."""
        state, before = self._state, network(self._state)
        stored = self._get(store.register, store.length)
        whole = before[: store.offset] + stored + before[store.offset + store.length :]
        four = state.sample.family is Family.IP
        state.tos = whole[1] if four else int.from_bytes(whole[:2], "big") >> 4 & 0xFF
        state.ttl = whole[8 if four else 7]
        if store.base != "network" or store.summed is not four or network(state) != whole:
            state.note("spoilt", whole)

    def _ct(self, key: str, direction: str | None) -> bytes:
        state = self._state
        if key == "state":
            return _number(state.tracked, _WORD)
        if not state.has_entry:
            raise _Break
        if key == "mark":
            return _number(state.connmark, _WORD)
        if key == "helper":
            name = state.get(Field.CT_HELPER)
            if not isinstance(name, str):
                raise _Break
            return name.encode().ljust(_NAME, b"\0")
        field = _CONNECTION[key, direction]
        value = state.sample.number(field)
        if field.is_address:
            return value.to_bytes(state.sample.family.bits // 8, "big")
        if field is Field.CT_STATUS:
            return _number(value, _WORD)
        if field in ACCOUNTS:
            return _number(value, 8)
        width = (field.bits or 8) + 7 >> 3
        return value.to_bytes(width, "big")

    def _fib(self, flags: str, result: str) -> bytes:
        sample = self._state.sample
        if result == "oif present":
            return _number(sample.number(_ROUTES_BACK[flags]), 1)
        return _number(sample.address_type(_FIB[flags]), _WORD)

    def _number(self, generator: NumberGenerator) -> bytes:
        sample = self._state.sample
        if generator.kind == "inc":
            self._state.note("count up", generator.modulus)
            return _number(sample.count % generator.modulus + generator.offset, _WORD)
        # nft_ng_random_gen: reciprocal_scale
        return _number((sample.draw * generator.modulus >> _RANDOM_BITS) + generator.offset, _WORD)

    # -- what is done ----------------------------------------------------------------------------

    def _translate(self, nat: Nat) -> None:
        addresses = self._ends(nat.addresses, self._state.sample.family.bits // 8)
        if nat.flags & _NETMAP:
            assert addresses is not None
            self._state.note("netmap", *addresses)
            return
        self._state.translate(nat.kind, addresses, self._ends(nat.ports, 2), nat.flags & _NAT_OPTIONS)

    def _ends(self, registers: tuple[int, int] | None, width: int) -> tuple[int, int] | None:
        if registers is None:
            return None
        low, high = (int.from_bytes(self._get(register, width), "big") for register in registers)
        return low, high


def _number(value: int, width: int) -> bytes:
    """Return a number in the byte order in which nf_tables stores values that are not from a header."""
    return int(value).to_bytes(width, sys.byteorder)


_ETHERNET, _LOOPBACK = 1, 772
"""Types of devices (``ARPHRD_*``)."""

_COMPARISONS: Final[Mapping[str, Callable[[bytes, bytes], bool]]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
_CONNECTION: Final[Mapping[tuple[str, str | None], Field]] = {
    ("status", None): Field.CT_STATUS,
    ("direction", None): Field.CT_DIRECTION,
    ("protocol", "original"): Field.CT_PROTO,
    **{
        (key, way): Field[f"CT_{'' if way is None else way.upper() + '_'}{name}"]
        for way in (None, "original", "reply")
        for key, name in (("packets", "PACKETS"), ("bytes", "BYTES"), ("avgpkt", "AVERAGE"))
    },
    **{
        (key, way): Field[f"CT_{way.upper()}_{name}"]
        for way in ("original", "reply")
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
