"""Actions as text: ``mark set-xmark 0x4000/0x4000``, ``dnat to 10.0.0.1 port 80``, ``jump nat/SVC``."""

from __future__ import annotations

from enum import StrEnum
from typing import assert_never

from translate.ir import (
    Accept,
    Action,
    AddTtl,
    Audit,
    Classify,
    ConnSecmark,
    Dnat,
    Drop,
    Duplicate,
    External,
    ExternalTarget,
    Family,
    Field,
    FillChecksum,
    Goto,
    HashMark,
    Interval,
    Jump,
    LimitMss,
    Log,
    Masquerade,
    Netmap,
    NfLog,
    NoTrack,
    Proxy,
    Queue,
    Redirect,
    Reject,
    RejectKind,
    RestoreMark,
    RestoreSocketMark,
    Return,
    SaveMark,
    Secmark,
    SetConnmark,
    SetDirection,
    SetMark,
    SetTcpFlags,
    SetTos,
    SetTtl,
    Snat,
    StripOptions,
    SynProxy,
    Template,
    Trace,
    TranslatePrefix,
    ZoneSide,
    format_address,
)
from translate.irtext.hashmarks import format_hash_mark, take_hash_mark
from translate.irtext.lexer import Cursor, TextError, number, quoted, word
from translate.irtext.logs import format_nflog, take_log, take_nflog
from translate.irtext.nat import format_addresses, format_ports, take_addresses, take_ports, take_prefix
from translate.irtext.values import format_interval, format_number, take_interval, take_number

__all__ = ["format_action", "format_actions", "take_actions"]


class _Copy(StrEnum):
    """The direction in which a label is copied."""

    SAVE = "save"
    RESTORE = "restore"


_NOTHING = "continue"
_MOST_MARK = (1 << 32) - 1
_MOST_SHIFT = 31
_MOST_BYTE = 0xFF


def format_actions(actions: tuple[Action, ...], family: Family) -> str:
    """Return the text of actions in order, or ``continue`` if there are none."""
    return ", ".join(format_action(action, family) for action in actions) or _NOTHING


def format_action(action: Action, family: Family) -> str:
    """Return the text of an action."""
    match action:
        case Accept():
            return "accept"
        case Drop():
            return "drop"
        case Return():
            return "return"
        case Jump(chain=chain):
            return f"jump {word(chain)}"
        case Goto(chain=chain):
            return f"goto {word(chain)}"
        case Reject(kind=kind):
            return f"reject {kind}"
        case SetMark(value=value, mask=mask):
            return f"mark set-xmark {value:#x}/{mask:#x}"
        case HashMark():
            return format_hash_mark(action)
        case LimitMss(mss=mss):
            return f"limit-mss {'path' if mss is None else mss}"
        case Proxy(address=address, port=port, value=value, mask=mask):
            where = (
                "device" if address is None else format_interval(Field.DADDR, Interval.point(address), family)
            )
            return f"proxy {where} port {port} mark {value:#x}/{mask:#x}"
        case Queue(first=first, last=last, bypass=bypass, by_processor=by_processor):
            ways = (" bypass" if bypass else "") + (" by-processor" if by_processor else "")
            return f"queue {first} to {last}{ways}"
        case StripOptions(options=options):
            return f"strip-options {quoted(' '.join(map(str, options)))}"
        case SetConnmark(value=value, mask=mask, shift=shift):
            return f"connmark set-xmark {value:#x}/{mask:#x}{_shift(shift)}"
        case SaveMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            return f"connmark save-mark nfmask {nfmask:#x} ctmask {ctmask:#x}{_shift(shift)}"
        case RestoreMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            return f"connmark restore-mark nfmask {nfmask:#x} ctmask {ctmask:#x}{_shift(shift)}"
        case RestoreSocketMark():
            return "socket-mark"
        case SetTos(value=value, mask=mask):
            return f"tos set-tos {value:#x}/{mask:#x}"
        case SetTcpFlags(value=value, mask=mask):
            return f"tcp-flags set {value:#x}/{mask:#x}"
        case TranslatePrefix(source=source, old=old, old_bits=old_bits, new=new, bits=bits):
            texts = [f"{format_address(family, a)}/{n}" for a, n in ((old, old_bits), (new, bits))]
            return f"prefix {'src' if source else 'dst'} {' '.join(texts)}"
        case SetTtl(value=value):
            return f"ttl set {value}"
        case AddTtl(number=by):
            return f"ttl {'dec' if by < 0 else 'inc'} {abs(by)}"
        case Dnat(addresses=addresses, ports=ports):
            return f"dnat{format_addresses(addresses, family)}{format_ports(ports)}"
        case Snat(addresses=addresses, ports=ports):
            return f"snat{format_addresses(addresses, family)}{format_ports(ports)}"
        case Masquerade(ports=ports):
            return f"masquerade{format_ports(ports)}"
        case Redirect(ports=ports):
            return f"redirect{format_ports(ports)}"
        case Netmap(network=network, mask=mask, side=side):
            where = "" if side is None else f" {side}"
            return f"netmap {network:#x}/{mask:#x}{where}"
        case NoTrack():
            return "notrack"
        case Template():
            return _template(action)
        case Log(prefix=prefix, level=level, details=details):
            return " ".join(("log", quoted(prefix), "level", str(level), *details))
        case NfLog():
            return format_nflog(action)
        case Audit():
            return "audit"
        case Trace():
            return "trace"
        case Classify(priority=priority):
            return f"classify {priority:#x}"
        case FillChecksum():
            return "fill-checksum"
        case Duplicate(gateway=gateway, device=device):
            through = f" device {quoted(device)}" if device else ""
            return f"duplicate {format_number(Field.DADDR, gateway, family)}{through}"
        case External(target=target):
            return f"external {target}"
        case Secmark(context=context):
            return f"secmark {quoted(context)}"
        case ConnSecmark(restore=restore):
            return f"connsecmark {'restore' if restore else 'save'}"
        case SynProxy():
            return _synproxy(action)
        case _:
            assert_never(action)


def _template(action: Template) -> str:
    text = f"ct zone {'mark' if action.zone is None else action.zone} {action.side}"
    text += f" helper {quoted(action.helper)}" if action.helper else ""
    text += "" if action.protocol is None else f" protocol {action.protocol}"
    text += f" timeout {quoted(action.timeout)}" if action.timeout else ""
    text += "" if action.events is None else f" events {quoted(' '.join(action.events))}"
    if action.expectation_events is None:
        return text
    return f"{text} expectation-events {quoted(' '.join(action.expectation_events))}"


def take_actions(cursor: Cursor, family: Family) -> tuple[Action, ...]:
    """Read actions up to the end of the line. Raises TextError."""
    if cursor.take(_NOTHING):
        cursor.finish()
        return ()
    actions = [_take_action(cursor, family)]
    while cursor.take(","):
        actions.append(_take_action(cursor, family))
    cursor.finish()
    return tuple(actions)


def _take_action(cursor: Cursor, family: Family) -> Action:
    token = cursor.next("an action")
    match "" if token.is_string else token.text:
        case "accept":
            return Accept()
        case "drop":
            return Drop()
        case "return":
            return Return()
        case "jump":
            return Jump(cursor.next("a chain").text)
        case "goto":
            return Goto(cursor.next("a chain").text)
        case "reject":
            return Reject(cursor.member(RejectKind))
        case "mark":
            cursor.expect("set-xmark")
            return SetMark(*_take_mark(cursor))
        case "hash-mark":
            return take_hash_mark(cursor)
        case "limit-mss":
            return LimitMss(None if cursor.take("path") else cursor.number("a segment size", most=65535))
        case "proxy":
            return _take_proxy(cursor, family)
        case "strip-options":
            return StripOptions(_take_options(cursor))
        case "connmark":
            return _take_connmark(cursor)
        case "queue":
            return _take_queue(cursor)
        case "tos":
            cursor.expect("set-tos")
            return SetTos(*_take_mark(cursor, _MOST_BYTE))
        case "tcp-flags":
            cursor.expect("set")
            return SetTcpFlags(*_take_mark(cursor, _MOST_BYTE))
        case "prefix":
            return take_prefix(cursor, family)
        case "ttl":
            return _take_ttl(cursor)
        case "dnat":
            return Dnat(take_addresses(cursor, family), take_ports(cursor))
        case "snat":
            return Snat(take_addresses(cursor, family), take_ports(cursor))
        case "masquerade":
            return Masquerade(take_ports(cursor))
        case "redirect":
            return Redirect(take_ports(cursor))
        case "netmap":
            return _take_netmap(cursor, family)
        case "notrack":
            return NoTrack()
        case "ct":
            return _take_template(cursor)
        case "log":
            return take_log(cursor)
        case "nflog":
            return take_nflog(cursor)
        case "audit":
            return Audit()
        case "trace":
            return Trace()
        case "socket-mark":
            return RestoreSocketMark()
        case "classify":
            return Classify(cursor.number("a priority", most=_MOST_MARK))
        case "fill-checksum":
            return FillChecksum()
        case "duplicate":
            gateway = take_number(cursor, Field.DADDR, family)
            return Duplicate(gateway, cursor.next("a device").text if cursor.take("device") else "")
        case "external":
            return External(cursor.member(ExternalTarget))
        case "secmark":
            return Secmark(cursor.next("a label").text)
        case "connsecmark":
            return ConnSecmark(restore=cursor.member(_Copy) is _Copy.RESTORE)
        case "synproxy":
            return _take_synproxy(cursor)
        case _:
            raise TextError(token.column, f"expected an action, found {token.text!r}")


def _synproxy(action: SynProxy) -> str:
    text = "synproxy" + ("" if action.mss is None else f" mss {action.mss}")
    text += "" if action.wscale is None else f" wscale {action.wscale}"
    flags = (("sack-perm", action.sack_perm), ("timestamp", action.timestamp), ("ecn", action.ecn))
    return " ".join((text, *(name for name, present in flags if present)))


def _take_synproxy(cursor: Cursor) -> SynProxy:
    return SynProxy(
        mss=cursor.number("an MSS") if cursor.take("mss") else None,
        wscale=cursor.number("a shift") if cursor.take("wscale") else None,
        sack_perm=cursor.take("sack-perm"),
        timestamp=cursor.take("timestamp"),
        ecn=cursor.take("ecn"),
    )


def _take_proxy(cursor: Cursor, family: Family) -> Proxy:
    address = None if cursor.take("device") else take_interval(cursor, Field.DADDR, family).low
    cursor.expect("port")
    port = cursor.number("a port", most=65535)
    cursor.expect("mark")
    value, mask = _take_mark(cursor)
    return Proxy(address=address, port=port, value=value, mask=mask)


def _take_netmap(cursor: Cursor, family: Family) -> Netmap:
    network, mask = _take_mark(cursor, (1 << family.bits) - 1)
    side = next((side for side in SetDirection if cursor.take(side)), None)
    return Netmap(network=network, mask=mask, side=side)


def _take_queue(cursor: Cursor) -> Queue:
    first = cursor.number("a queue", most=65535)
    cursor.expect("to")
    last = cursor.number("a queue", most=65535)
    bypass = cursor.take("bypass")
    return Queue(first=first, last=last, bypass=bypass, by_processor=cursor.take("by-processor"))


def _take_options(cursor: Cursor) -> tuple[int, ...]:
    token = cursor.next("numbers of options")
    return tuple(number(word, token.column, "an option", most=255) for word in token.text.split())


def _take_ttl(cursor: Cursor) -> SetTtl | AddTtl:
    if cursor.take("set"):
        return SetTtl(cursor.number("a TTL", most=_MOST_BYTE))
    sign = -1 if cursor.take("dec") else 1
    if sign > 0 and not cursor.take("inc"):
        raise cursor.fault("expected set, inc or dec")
    return AddTtl(sign * cursor.number("a number", most=_MOST_BYTE))


def _take_mark(cursor: Cursor, most: int = _MOST_MARK) -> tuple[int, int]:
    token = cursor.next("a mark and its mask")
    value, slash, mask = token.text.partition("/")
    if not slash:
        raise TextError(token.column, f"expected a mark and its mask, found {token.text!r}")
    column = token.column + len(value) + 1
    return (
        number(value, token.column, "a mark", most=most),
        number(mask, column, "a mask", most=most),
    )


def _take_connmark(cursor: Cursor) -> SetConnmark | SaveMark | RestoreMark:
    if cursor.take("set-xmark"):
        return SetConnmark(*_take_mark(cursor), _take_shift(cursor))
    saves = cursor.take("save-mark")
    if not saves and not cursor.take("restore-mark"):
        raise cursor.fault("expected set-xmark, save-mark or restore-mark")
    cursor.expect("nfmask")
    nfmask = cursor.number("a mask", most=_MOST_MARK)
    cursor.expect("ctmask")
    ctmask = cursor.number("a mask", most=_MOST_MARK)
    return (SaveMark if saves else RestoreMark)(nfmask, ctmask, _take_shift(cursor))


def _shift(shift: int) -> str:
    """Return the words for a shift of a mark; none for a shift by 0."""
    return f" {'left' if shift > 0 else 'right'} {abs(shift)}" if shift else ""


def _take_shift(cursor: Cursor) -> int:
    if cursor.take("left"):
        return cursor.number("a number of bits", most=_MOST_SHIFT)
    return -cursor.number("a number of bits", most=_MOST_SHIFT) if cursor.take("right") else 0


def _take_template(cursor: Cursor) -> Template:
    cursor.expect("zone")
    zone = None if cursor.take("mark") else cursor.number("a zone", most=65535)
    return Template(
        zone=zone,
        side=cursor.member(ZoneSide),
        helper=cursor.next("a helper").text if cursor.take("helper") else "",
        protocol=cursor.number("a protocol", most=255) if cursor.take("protocol") else None,
        timeout=cursor.next("a timeout policy").text if cursor.take("timeout") else "",
        events=_take_names(cursor) if cursor.take("events") else None,
        expectation_events=_take_names(cursor) if cursor.take("expectation-events") else None,
    )


def _take_names(cursor: Cursor) -> tuple[str, ...]:
    return tuple(cursor.next("names").text.split())
