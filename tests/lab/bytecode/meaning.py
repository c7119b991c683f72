"""The effect of one statement of a Program on a packet, in terms of :mod:`tests.lab.bytecode.samples`.

Written from the definitions of ``translate.ir`` alone: neither the passes nor the emitter are asked.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from tests.lab.bytecode import instructions
from tests.lab.bytecode.headers import network, transport
from tests.lab.bytecode.instructions import Instruction
from tests.lab.bytecode.samples import State
from translate.ir import (
    RANDOM_RANGE,
    SET_PORT_PROTOCOLS,
    Accept,
    Account,
    Action,
    AddTtl,
    AnyOf,
    Apply,
    Audit,
    Cell,
    Choose,
    Classify,
    ConnectionLimit,
    ConnectionState,
    Dnat,
    Drop,
    Duplicate,
    External,
    Family,
    Field,
    FieldTest,
    FillChecksum,
    Goto,
    HashLimit,
    Interval,
    IpSet,
    Jump,
    Limit,
    LimitMss,
    Log,
    LogDetail,
    Lookup,
    Masquerade,
    Name,
    NatPorts,
    Netmap,
    NfLog,
    NoTrack,
    Nth,
    Protocol,
    Proxy,
    Queue,
    Quota,
    Random,
    Recent,
    RecentMode,
    Redirect,
    Reject,
    RejectKind,
    RestoreMark,
    Return,
    SaveMark,
    SetConnmark,
    SetDirection,
    SetMark,
    SetTcpFlags,
    SetTest,
    SetTos,
    SetTtl,
    SetType,
    SetUpdate,
    Snat,
    Statement,
    StripOptions,
    SynProxy,
    Template,
    Test,
    Trace,
    TranslatePrefix,
    Word,
    WordOperator,
    WordTest,
    ZoneSide,
)
from translate.passes.normalise import canonical

__all__ = ["World", "holds", "perform"]

_ALL: Final = 0xFFFFFFFF
_RANDOM_BITS: Final = 31


@dataclass(frozen=True, slots=True)
class World:
    """The objects of a statement: ipsets by name, and the timeouts of each list of ``-m recent``."""

    family: Family
    sets: Mapping[str, IpSet]
    lists: Mapping[str, tuple[int | None, ...]]


def perform(statement: Statement, state: State, world: World) -> bool:
    """Apply the statement to ``state``; return whether the next statement follows."""
    limited = any(isinstance(test, Limit | ConnectionLimit | Quota) for test in statement.tests)
    if limited and canonical(statement.tests, world.family) is None:
        return True  # a test that never holds only takes from its own bucket, which no other test reads
    if not all(_holds(test, state, world) for test in statement.tests):
        return True
    match statement:
        case Apply(actions=actions):
            return _act(actions, state)
        case Choose(branches=branches, equal=equal):
            drawn = state.sample.draw
            if equal:
                return _act(branches[drawn * len(branches) >> _RANDOM_BITS].actions, state)
            for branch in branches:
                drawn -= branch.weight
                if drawn < 0:
                    return _act(branch.actions, state)
            return True
        case Lookup(fields=fields, entries=entries):
            values = [state.get(f) for f in fields]
            for entry in entries:
                if all(_is(value, wanted) for value, wanted in zip(values, entry.key, strict=True)):
                    return _act(entry.actions, state)
            return True
        case _:
            assert_never(statement)


def holds(test: FieldTest, value: int | str | None) -> bool:
    """Return whether a test of a field is true of this value; None is an absent field."""
    if value is None:
        return False
    if isinstance(value, int) and test.mask is not None:
        value &= test.mask
    return any(_is(value, wanted) for wanted in test.values) is not test.negated


def _is(value: int | str | None, wanted: Interval | Name) -> bool:
    if isinstance(wanted, Name):
        return isinstance(value, str) and wanted.matches(value)
    return isinstance(value, int) and value in wanted


def _holds(test: Test, state: State, world: World) -> bool:
    match test:
        case FieldTest():
            return holds(test, state.get(test.field))
        case AnyOf(tests=tests, negated=negated):
            return any(holds(part, state.get(part.field)) for part in tests) is not negated
        case Random(numerator=numerator, negated=negated):
            # The number of draws that hold matters, not which of them hold.
            return state.sample.draw < (RANDOM_RANGE - numerator if negated else numerator)
        case Nth(every=every, packet=packet, negated=negated):
            state.note("count up", every)
            return (state.sample.count % every == packet) is not negated
        case HashLimit(name=name):
            state.note("take", name)
            return state.sample.within is not test.above
        case ConnectionLimit(state=name, limit=limit):
            state.note("take", name, limit)
            return state.sample.within is not test.above
        case Quota(state=state_name):
            state.note("take", state_name)
            return state.sample.within is not test.negated
        case Limit(bucket=bucket):
            state.note("take", bucket)
            return state.sample.within
        case SetTest():
            return _member(test, state, world) is not test.negated
        case WordTest():
            data = network(state) + transport(state)
            return all(_word(word, data) for word in test.words) is not test.negated
        case Recent():
            return _recent(test, state, world) is not test.negated
        case SetUpdate():
            raise AssertionError("statements that change sets are left out")
        case Account(name=name):
            state.note("count", name)
            return True
        case _:
            assert_never(test)


def _member(test: SetTest, state: State, world: World) -> bool:
    known = world.sets[test.name]
    sample = state.sample
    proto = sample.number(Field.L4PROTO)
    ported = proto in SET_PORT_PROTOCOLS
    if known.type is SetType.BITMAP_PORT and sample.values[Field.L4PROTO] not in (6, 17):
        return False
    if Cell.PORT in known.type.cells and (not ported or sample.fragment):
        return (
            False  # an element without ports is refused, and a packet without ports matches no other element
        )
    key = [sample.number(field) for field in known.fields(test.directions)]
    fitting = [
        element for element in known.elements if all(v in i for v, i in zip(key, element.key, strict=True))
    ]
    # Of nets the longest prefix decides, which is the smallest interval.
    best = min(fitting, key=lambda e: sum(i.size for i in e.key), default=None)
    return best is not None and best.nomatch is test.nomatch


def _word(word: Word, data: bytes) -> bool:
    """Evaluate one word of ``u32_match_it``."""
    base, at = 0, word.offset
    value = int.from_bytes(data[at : at + 4], "big") if at + 4 <= len(data) else None
    for operator, number in word.steps:
        if value is None:
            return False
        match operator:
            case WordOperator.AND:
                value &= number
            case WordOperator.LEFT:
                value = value << number & 0xFFFFFFFF
            case WordOperator.RIGHT:
                value >>= number
            case WordOperator.AT:
                base += value
                at = base + number
                value = int.from_bytes(data[at : at + 4], "big") if at + 4 <= len(data) else None
    return value is not None and any(value in interval for interval in word.values)


def _recent(test: Recent, state: State, world: World) -> bool:
    """Evaluate ``recent_mt``, without hit counts above one and TTLs, which emitters refuse."""
    side = Field.SADDR if test.side is SetDirection.SRC else Field.DADDR
    address = state.sample.number(side) & test.mask
    key = address.to_bytes(world.family.bits // 8, "big")
    for more in test.key:
        value = state.get(more)
        if value is None:
            return False
        key += _register(more, value, world.family)
    names = tuple(world.lists)
    holds = test.mode is RecentMode.SET or state.has_seen(test.name, test.seconds, key, names)
    changes = holds and test.mode is not RecentMode.RCHECK
    if test.negated and test.mode is RecentMode.UPDATE:  # an entry that is too old becomes a new one
        changes = not holds and state.has_seen(test.name, None, key, names)
    if changes:
        for timeout in world.lists[test.name]:
            state.listed[test.name, timeout, key] = test.mode is not RecentMode.REMOVE
    return holds


def _register(field: Field, value: int | str, family: Family) -> bytes:
    """Return the value of a field in the form in which a concatenation has it."""
    if isinstance(value, str):
        return value.encode().ljust(16, b"\0")
    if field.is_address:
        return value.to_bytes(family.bits // 8, "big")
    width = ((field.bits or 8) + 7) // 8
    order = "big" if field in (Field.SPORT, Field.DPORT) else sys.byteorder
    return value.to_bytes(width, order).ljust(4, b"\0")


def _act(actions: Sequence[Action], state: State) -> bool:
    for action in actions:
        match action:
            case Accept():
                state.note("accept")
                return False
            case Drop():
                state.note("drop")
                return False
            case Return():
                return False
            case Jump(chain=name):
                state.note("call", name)
            case Goto(chain=name):
                state.note("call", name)
                return False
            case Reject(kind=kind):
                state.note("reject", *_REJECTS[kind])
                return False
            case Dnat(addresses=addresses, ports=ports):
                state.translate("dnat", _range(addresses), _bound(ports, state), _options(ports))
                return False
            case Snat(addresses=addresses, ports=ports):
                state.translate("snat", _range(addresses), _range(ports.interval), _options(ports))
                return False
            case Masquerade(ports=ports):
                state.translate("masq", None, _range(ports.interval), _options(ports))
                return False
            case Redirect(ports=ports):
                state.translate("redir", None, _range(ports.interval), _options(ports))
                return False
            case Log() | NfLog():
                state.note("log", _log(action))
            case Audit():
                state.note("log", instructions.Log("", None, 0, 0, _AUDIT_LEVEL, 0))
            case Trace():
                state.note("nftrace", 1)
            case Classify(priority=priority):
                state.note("priority", priority)
            case Duplicate(gateway=gateway, device=device):
                state.note("dup", gateway, bool(device))
            case External():
                raise AssertionError("no nft statement has such an effect")
            case SynProxy():
                flags = state.get(Field.TCP_FLAGS)
                if isinstance(flags, int) and flags & 0x17 in (0x02, 0x10):
                    state.note("synproxy", action.mss or 0, action.wscale or 0, _proxied(action))
                    return False
            case FillChecksum():
                pass  # no packet differs, and nftables has no statement for it
            case Template(helper=helper, protocol=protocol) if helper:
                state.note("helper", f"helper_{helper}_{'tcp' if protocol == Protocol.TCP else 'udp'}")
            case Template(zone=zone, side=side):
                if state.tracked is ConnectionState.INVALID:
                    state.note("zone", None if side is ZoneSide.BOTH else side.value, zone)
                    state.tracked = ConnectionState.NEW
            case Proxy(address=address, port=port):
                # Every sample has a socket for the proxy, as on the machine.
                state.note("proxy", address, port or None)
                state.mark = (state.mark & ~action.mask & _ALL) ^ action.value
                state.note("accept")
                return False
            case Netmap(network=network, mask=mask):
                # The legalise stage treats a separate statement as one of PREROUTING.
                last = network | mask ^ (1 << state.sample.family.bits) - 1
                if network == last:
                    state.translate("dnat", (network, last), None, 0)
                else:
                    state.note("netmap", network, last)
                return False
            case Queue(first=first, last=last, bypass=bypass, by_processor=by_processor):
                state.note("queue", first, last - first + 1, bypass | by_processor << 1)
                return False
            case StripOptions(options=options):
                for option in options:
                    state.note("strip", option)
            case LimitMss(mss=mss):
                if mss is not None or state.get(Field.OIF) != "lo":
                    state.note("mss", instructions.PATH_MSS if mss is None else mss)
            case NoTrack():
                state.tracked = ConnectionState.UNTRACKED
            case SetMark(value=value, mask=mask):
                state.mark = (state.mark & ~mask & _ALL) ^ value
            case SetTos(value=value, mask=mask):
                state.tos = state.tos & ~mask ^ value
            case TranslatePrefix():
                raise AssertionError("refused by nftables")
            case SetTcpFlags(value=value, mask=mask):
                if state.get(Field.TCP_FLAGS) is not None:
                    state.flags = state.flags & ~mask ^ value
            case SetTtl(value=value):
                state.ttl = value
            case AddTtl(number=number):
                state.ttl = min(max(state.ttl + number, 0), 255)
            case SetConnmark() | SaveMark() | RestoreMark():
                _connmark(action, state)
            case _:
                assert_never(action)
    return True


def _connmark(action: SetConnmark | SaveMark | RestoreMark, state: State) -> None:
    if not state.has_entry:
        return
    match action:
        case SetConnmark(value=value, mask=mask, shift=shift):
            state.connmark = _shifted((state.connmark & ~mask & _ALL) ^ value, shift)
        case SaveMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            state.connmark = (state.connmark & ~ctmask & _ALL) ^ _shifted(state.mark & nfmask, shift)
        case RestoreMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            state.mark = (state.mark & ~nfmask & _ALL) ^ _shifted(state.connmark & ctmask, shift)


def _shifted(mark: int, shift: int) -> int:
    return mark << shift & _ALL if shift >= 0 else mark >> -shift


def _range(interval: Interval | None) -> tuple[int, int] | None:
    return None if interval is None else (interval.low, interval.high)


def _bound(ports: NatPorts, state: State) -> tuple[int, int] | None:
    """Return the range of a destination port; with a port shift it is one port."""
    interval = ports.interval
    if interval is None or ports.base is None:
        return _range(interval)
    old = state.sample.number(Field.DPORT)
    new = interval.low + (old - ports.base) % 0x10000 % interval.size
    return new, new


def _options(ports: NatPorts) -> int:
    """Return the flags of ``struct nf_nat_range2``, except those for given addresses and ports."""
    return ports.random << 2 | ports.persistent << 3 | ports.fully_random << 4


def _log(action: Log | NfLog) -> Instruction:
    if isinstance(action, NfLog):
        size, threshold = action.size or 0, action.threshold or 0
        return instructions.Log(action.prefix, action.group, size, threshold, None, 0)
    flags = sum(bit for detail, bit in _LOG_FLAGS.items() if detail in action.details)
    return instructions.Log(action.prefix, None, 0, 0, action.level, flags)


def _proxied(action: SynProxy) -> int:
    """Return the flags of the options of a server (``NF_SYNPROXY_OPT_MSS`` and so on)."""
    present = (action.mss is not None, action.wscale is not None, action.sack_perm, action.timestamp)
    return sum(flag << bit for bit, flag in enumerate(present))


_AUDIT_LEVEL: Final = 8  # NFT_LOGLEVEL_AUDIT
_LOG_FLAGS: Final = {
    LogDetail.TCP_SEQUENCE: 0x01,  # NF_LOG_TCPSEQ and so on
    LogDetail.TCP_OPTIONS: 0x02,
    LogDetail.IP_OPTIONS: 0x04,
    LogDetail.UID: 0x08,
    LogDetail.MACDECODE: 0x20,
}
_UNREACHABLE: Final = {
    # RFC 792 and RFC 1812
    RejectKind.ICMP_NET_UNREACHABLE: 0,
    RejectKind.ICMP_HOST_UNREACHABLE: 1,
    RejectKind.ICMP_PROTO_UNREACHABLE: 2,
    RejectKind.ICMP_PORT_UNREACHABLE: 3,
    RejectKind.ICMP_NET_PROHIBITED: 9,
    RejectKind.ICMP_HOST_PROHIBITED: 10,
    RejectKind.ICMP_ADMIN_PROHIBITED: 13,
    # RFC 4443
    RejectKind.ICMP6_NO_ROUTE: 0,
    RejectKind.ICMP6_ADM_PROHIBITED: 1,
    RejectKind.ICMP6_ADDR_UNREACHABLE: 3,
    RejectKind.ICMP6_PORT_UNREACHABLE: 4,
    RejectKind.ICMP6_POLICY_FAIL: 5,
    RejectKind.ICMP6_REJECT_ROUTE: 6,
}
_REJECTS: Final = {
    **{kind: (0, code) for kind, code in _UNREACHABLE.items()},  # NFT_REJECT_ICMP_UNREACH
    RejectKind.TCP_RESET: (1, 0),  # NFT_REJECT_TCP_RST
}
