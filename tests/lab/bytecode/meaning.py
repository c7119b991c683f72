"""The effect of one statement of a Program on a packet, in terms of :mod:`tests.lab.bytecode.samples`.

It follows from the definitions of ``translate.ir`` alone, and uses neither the passes nor the emitter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from tests.lab.bytecode import effects, instructions
from tests.lab.bytecode.conditions import World, is_value, test_holds
from tests.lab.bytecode.instructions import Instruction
from tests.lab.bytecode.samples import State
from translate.ir import (
    Accept,
    Action,
    AddTtl,
    Apply,
    Audit,
    Choose,
    Classify,
    ConnectionLimit,
    ConnectionState,
    ConnSecmark,
    Dnat,
    Drop,
    Duplicate,
    External,
    Field,
    FillChecksum,
    Goto,
    HashMark,
    Interval,
    Jump,
    Limit,
    LimitMss,
    Log,
    LogDetail,
    Lookup,
    Masquerade,
    NatPorts,
    Netmap,
    NfLog,
    NoTrack,
    Protocol,
    Proxy,
    Queue,
    Quota,
    Redirect,
    Reject,
    RejectKind,
    RestoreMark,
    RestoreSocketMark,
    Return,
    SaveMark,
    Secmark,
    SetConnmark,
    SetMark,
    SetTcpFlags,
    SetTos,
    SetTtl,
    Snat,
    Statement,
    StripOptions,
    SynProxy,
    Template,
    Trace,
    TranslatePrefix,
    ZoneSide,
)
from translate.passes.normalise import canonical

__all__ = ["perform"]

_ALL: Final = 0xFFFFFFFF
_RANDOM_BITS: Final = 31


def perform(statement: Statement, state: State, world: World) -> bool:
    """Apply the statement to ``state``; return whether the next statement follows."""
    limited = any(isinstance(test, Limit | ConnectionLimit | Quota) for test in statement.tests)
    if limited and canonical(statement.tests, world.family) is None:
        return True  # a test that never holds only takes from its own bucket, which no other test reads
    if not all(test_holds(test, state, world) for test in statement.tests):
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
                if all(is_value(value, wanted) for value, wanted in zip(values, entry.key, strict=True)):
                    return _act(entry.actions, state)
            return True
        case _:
            assert_never(statement)


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
                state.note("log", effects.Log("", None, 0, 0, _AUDIT_LEVEL, 0))
            case Trace():
                state.note("nftrace", 1)
            case Classify(priority=priority):
                state.note("priority", priority)
            case Duplicate(gateway=gateway, device=device):
                state.note("dup", gateway, bool(device))
            case Secmark():
                raise AssertionError("without a security module, nothing loads such a rule")
            case ConnSecmark(restore=True):
                if state.has_entry and not state.label:
                    state.label = state.connlabel
            case ConnSecmark():
                if state.has_entry and not state.connlabel:
                    state.connlabel = state.label
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
                state.note("proxy", address, port or (None if address is not None else 0))
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
            case TranslatePrefix() | HashMark():
                raise AssertionError("refused by nftables")
            case SetTcpFlags(value=value, mask=mask):
                if state.get(Field.TCP_FLAGS) is not None:
                    state.flags = state.flags & ~mask ^ value
            case SetTtl(value=value):
                state.ttl = value
            case AddTtl(number=number):
                state.ttl = min(max(state.ttl + number, 0), 255)
            case RestoreSocketMark():
                if state.socket_mark is not None:
                    state.mark = state.socket_mark
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
        return effects.Log(action.prefix, action.group, size, threshold, None, 0)
    flags = sum(bit for detail, bit in _LOG_FLAGS.items() if detail in action.details)
    return effects.Log(action.prefix, None, 0, 0, action.level, flags)


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
