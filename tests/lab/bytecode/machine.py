"""Execution of a chain's rules on one packet, as in ``nft_do_chain``."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, assert_never

from tests.lab.bytecode.effects import (
    Count,
    HandOver,
    Help,
    Log,
    Nat,
    NoTrack,
    ProxyHandshake,
    Reject,
    SendCopy,
    SetCt,
    SetCtZone,
    SetMeta,
    SetTcpOption,
    StorePayload,
    StripTcpOption,
    Take,
    TransparentProxy,
    UpdateSet,
)
from tests.lab.bytecode.headers import network, transport
from tests.lab.bytecode.instructions import (
    PATH_MSS,
    Bitwise,
    Byteorder,
    Compare,
    Constant,
    Decide,
    Instruction,
    LoadChunk,
    LoadCt,
    LoadExtension,
    LoadFib,
    LoadMeta,
    LoadPayload,
    LoadRoute,
    LoadTcpOption,
    LookUp,
    NumberGenerator,
    Range,
    ShiftRight,
    Verdict,
)
from tests.lab.bytecode.listing import Listing
from tests.lab.bytecode.loads import Loads, NoMatch
from tests.lab.bytecode.samples import State
from translate.ir import ConnectionState, Family, Field

__all__ = ["Names", "RecentSet", "run"]

_WORD: Final = 4
_TCP_FLAGS: Final = 13
_NETMAP: Final = 0x40  # NF_NAT_RANGE_NETMAP
_NAT_OPTIONS: Final = 0x1C  # NF_NAT_RANGE_PROTO_RANDOM, _PERSISTENT, _PROTO_RANDOM_FULLY


@dataclass(frozen=True, slots=True)
class RecentSet:
    """A set that stands for a list of ``-m recent``, and its timeout in seconds."""

    list: str
    timeout: int | None


@dataclass(frozen=True, slots=True)
class Names:
    """The objects that nft's names stand for: chains that are not run, counters, limits, sets of ``-m
    recent``.

    ``limits`` has quotas as well; ``over`` are those that hold only after they are exceeded.
    ``lists`` are the names of all lists, in order.
    """

    chains: Mapping[str, str]
    counters: Mapping[str, str]
    limits: Mapping[str, str]
    over: frozenset[str]
    hashed: Mapping[str, str]
    sets: Mapping[str, RecentSet]
    lists: tuple[str, ...]


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
        self._loads = Loads(whole.state)
        self._bytes = bytearray(16 * _WORD)

    def run(self, rule: tuple[Instruction, ...]) -> Verdict | None:
        """Run a rule and return its verdict; None if it does not match or has no verdict."""
        try:
            for instruction in rule:
                decided = self._step(instruction)
                if decided is not None:
                    return decided
        except NoMatch:
            pass
        return None

    def _step(self, instruction: Instruction) -> Verdict | None:
        match instruction:
            case LoadMeta(key=key, target=target):
                self._put(target, self._loads.meta(key))
            case LoadPayload(base=base, offset=offset, length=length, target=target):
                self._put(target, self._loads.payload(base, offset, length))
            case LoadExtension(kind=kind, offset=offset, length=length, target=target):
                self._put(target, self._loads.extension(kind)[offset : offset + length])
            case LoadTcpOption(kind=kind, target=target, presence=True):
                kinds = self._state.get(Field.TCP_OPTIONS)
                self._put(target, bytes([isinstance(kinds, int) and kinds >> kind & 1]))
            case LoadChunk(kind=kind, target=target):
                chunks = self._loads.chunks()
                self._put(target, bytes([isinstance(chunks, int) and chunks >> kind & 1]))
            case LoadTcpOption(kind=2, offset=2, length=2, target=target):
                self._put(target, self._loads.present(Field.TCP_MSS).to_bytes(2, "big"))
            case LoadTcpOption():
                raise AssertionError(instruction)
            case LoadCt(key=key, direction=direction, target=target):
                self._put(target, self._loads.ct(key, direction))
            case LoadFib(flags=flags, result=result, target=target):
                self._put(target, self._loads.fib(flags, result))
            case NumberGenerator():
                self._put(instruction.target, self._loads.number(instruction))
            case Constant(data=data, target=target):
                self._put(target, data)
            case Bitwise(source=source, target=target, mask=mask, xor=xor):
                columns = zip(self._get(source, len(mask)), mask, xor, strict=True)
                self._put(target, bytes(value & kept ^ flipped for value, kept, flipped in columns))
            case ShiftRight(source=source, target=target, bits=bits):
                word = int.from_bytes(self._get(source, _WORD), sys.byteorder) >> bits
                self._put(target, word.to_bytes(_WORD, sys.byteorder))
            case Byteorder(source=source, target=target, size=size, length=length):
                whole = self._get(source, length)
                parts = [whole[i : i + size] for i in range(0, length, size)]
                self._put(target, b"".join(p[::-1] if sys.byteorder == "little" else p for p in parts))
            case Compare(operator=compare, register=register, data=data):
                if not _COMPARISONS[compare](self._get(register, len(data)), data):
                    raise NoMatch
            case Range(negated=negated, register=register, low=low, high=high):
                if (low <= self._get(register, len(low)) <= high) is negated:
                    raise NoMatch
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
                    raise NoMatch
            case SetMeta(key="nftrace", register=register):
                self._state.note("nftrace", self._get(register, 1)[0])
            case SetMeta(key="priority", register=register):
                self._state.note("priority", int.from_bytes(self._get(register, _WORD), sys.byteorder))
            case SetMeta(key="secmark", register=register):
                self._state.label = int.from_bytes(self._get(register, _WORD), sys.byteorder)
            case SetMeta(register=register):
                self._state.mark = int.from_bytes(self._get(register, _WORD), sys.byteorder)
            case SetCt(key="secmark", register=register):
                if self._state.has_entry:
                    self._state.connlabel = int.from_bytes(self._get(register, _WORD), sys.byteorder)
            case SetCt(register=register):
                if self._state.has_entry:
                    self._state.connmark = int.from_bytes(self._get(register, _WORD), sys.byteorder)
            case TransparentProxy(address=address, port=port):
                width = self._state.sample.family.bits // 8
                self._state.note(
                    "proxy",
                    None if address is None else int.from_bytes(self._get(address, width), "big"),
                    None if port is None else int.from_bytes(self._get(port, 2), "big"),
                )
            case SendCopy(address=address, device=device):
                width = self._state.sample.family.bits // 8
                self._state.note("dup", int.from_bytes(self._get(address, width), "big"), device is not None)
            case ProxyHandshake(mss=mss, wscale=wscale, flags=flags):
                self._state.note("synproxy", mss, wscale, flags)
                return _DONE
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
            raise NoMatch
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
                raise NoMatch
            return
        known = self._whole.names.sets[contents.name]
        key = self._get(update.register, contents.width)
        self._state.listed[known.list, known.timeout, key] = update.operation != "delete"

    def _store(self, store: StorePayload) -> None:
        """Write a TOS or a TTL; a change of any other byte of the header is recorded."""
        state = self._state
        if store.base == "transport":
            self._store_flags(store)
            return
        before = network(state)
        stored = self._get(store.register, store.length)
        whole = before[: store.offset] + stored + before[store.offset + store.length :]
        four = state.sample.family is Family.IP
        state.tos = whole[1] if four else int.from_bytes(whole[:2], "big") >> 4 & 0xFF
        state.ttl = whole[8 if four else 7]
        if store.base != "network" or store.summed is not four or network(state) != whole:
            state.note("spoilt", whole)

    def _store_flags(self, store: StorePayload) -> None:
        """Write the flags of TCP."""
        state = self._state
        before = transport(state)
        stored = self._get(store.register, store.length)
        whole = before[: store.offset] + stored + before[store.offset + store.length :]
        state.flags = whole[_TCP_FLAGS]
        if not store.summed or transport(state) != whole:
            state.note("spoilt", whole)

    # -- NAT ---------------------------------------------------------------------------------------

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


_COMPARISONS: Final[Mapping[str, Callable[[bytes, bytes], bool]]] = {
    "eq": operator.eq,
    "neq": operator.ne,
    "lt": operator.lt,
    "lte": operator.le,
    "gt": operator.gt,
    "gte": operator.ge,
}
