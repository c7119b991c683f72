"""Descriptions of rules, tests and actions.

For ``explain``, ``coverage`` and the deciding rules of a difference. The words come from the
meaning (tests, actions), not from names of chains or comments.
"""

from __future__ import annotations

from typing import Final, assert_never

from backends.model.clock import LATEST_TIME, time_to_text
from harness.corpus.formats.fieldwords import field_sentence
from harness.corpus.formats.markwords import copying_text, hash_mark_text, marking_text
from harness.corpus.formats.packets import flags_to_text, protocol_name
from harness.corpus.formats.packetwords import options_text
from harness.corpus.formats.statewords import limit_text, recent_text, update_text
from translate.ir import (
    ACCOUNTS,
    Accept,
    Account,
    Action,
    AddressType,
    AddTtl,
    AnyOf,
    Audit,
    BytecodeTest,
    CgroupTest,
    Classify,
    ClusterShare,
    ConnectionLimit,
    ConnectionState,
    ConnectionStatus,
    ConnLabel,
    ConnSecmark,
    Dnat,
    Drop,
    Duplicate,
    External,
    ExternalTarget,
    Family,
    Field,
    FieldTest,
    FillChecksum,
    Goto,
    HashLimit,
    HashMark,
    HeaderOptions,
    Hidden,
    Interval,
    Jump,
    Limit,
    LimitMss,
    Log,
    Masquerade,
    Name,
    NatPorts,
    Netmap,
    NfLog,
    NoTrack,
    Nth,
    PacketType,
    Proxy,
    Queue,
    Quota,
    Random,
    Recent,
    Redirect,
    Reject,
    RestoreMark,
    RestoreSocketMark,
    Return,
    Rule,
    SaveMark,
    Secmark,
    SetConnmark,
    SetDirection,
    SetMark,
    SetTcpFlags,
    SetTest,
    SetTos,
    SetTtl,
    SetUpdate,
    Snat,
    StripOptions,
    SynProxy,
    TcpFlag,
    Template,
    Test,
    Trace,
    TranslatePrefix,
    Value,
    WordTest,
    ZoneSide,
    field_bits,
    format_address,
    format_mac,
    words_text,
)
from translate.ir.bytecode import bytecode_text

__all__ = ["action_text", "effect_text", "place", "test_text", "value_text"]

_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def place(rule: Rule) -> str:
    """Return ``file:line: the rule as written``."""
    return f"{rule.origin.place}: {rule.origin.text}" if rule.origin.text else rule.origin.place


def effect_text(rule: Rule, family: Family) -> str:
    """Return the effect of the rule on a packet that matches it."""
    if rule.actions:
        return action_text(rule.actions[0], family)
    updates = [update_text(test) for test in rule.tests if isinstance(test, SetUpdate)]
    if updates:
        return " and ".join(updates)
    hidden = {unknown.hides for unknown in rule.unknown}
    if hidden & {Hidden.ACTION, Hidden.RULES}:
        return "has an unknown effect"
    return "lets the packet go on" if Hidden.EFFECT in hidden else "only counts"


def value_text(field: Field, value: int | str, family: Family) -> str:
    """Return one value of a field as text."""
    if isinstance(value, str):
        return value or "none"
    if field.is_address:
        return format_address(family, value)
    match field:
        case Field.L4PROTO | Field.CT_PROTO:
            return protocol_name(value)
        case Field.MARK | Field.CT_MARK | Field.TOS | Field.IIF_GROUP | Field.OIF_GROUP:
            return f"{value:#x}"
        case Field.ETHER_SADDR:
            return format_mac(value)
        case Field.CLOCK:
            return time_to_text(value)
        case Field.CLOCK_DAYTIME:
            return f"{value // 3600:02}:{value // 60 % 60:02}:{value % 60:02}"
        case Field.CLOCK_WEEKDAY:
            return _WEEKDAYS[value] if value < len(_WEEKDAYS) else str(value)
        case Field.PACKET_TYPE:
            return PacketType(value).name.lower() if value in set(PacketType) else str(value)
        case Field.TCP_FLAGS:
            return flags_to_text(TcpFlag(value)) or "none"
        case Field.CT_STATE:
            return ConnectionState(value).name if value in set(ConnectionState) else str(value)
        case Field.CT_STATUS:
            return (ConnectionStatus(value).name or str(value)) if value else "none"
        case _ if field.name.startswith("FIB_"):
            return AddressType(value).name if value in set(AddressType) else str(value)
        case _:
            return str(value)


def _interval_text(field: Field, value: Value, family: Family) -> str:
    if isinstance(value, Name):
        return (f"{value.text}+" if value.text else "any") if value.wildcard else value.text or "none"
    if value.is_point:
        return value_text(field, value.low, family)
    if field.is_address:
        length = value.prefix_length(family.bits)
        if length is not None:
            return f"{format_address(family, value.low)}/{length}"
    if field is Field.CLOCK and not value.low:
        return f"{value_text(field, value.high, family)} or earlier"
    if field is Field.CLOCK and value.high == LATEST_TIME:
        return f"{value_text(field, value.low, family)} or later"
    if field in ACCOUNTS and value.high == (1 << field_bits(field, family)) - 1:
        return f"{value.low} or more"
    return f"{value_text(field, value.low, family)}-{value_text(field, value.high, family)}"


def test_text(test: Test, family: Family) -> str:
    """Return a description of a test, for example ``ip.saddr is not 10.244.0.0/16``."""
    match test:
        case FieldTest():
            if (sentence := field_sentence(test, family)) is not None:
                return sentence
            values = " or ".join(_interval_text(test.field, v, family) for v in test.values)
            name = test.field.text if test.mask is None else f"{test.field.text} & {test.mask:#x}"
            return f"{name} is {'not ' if test.negated else ''}{values}"
        case AnyOf():
            inner = " or ".join(test_text(t, family) for t in test.tests)
            return f"not ({inner})" if test.negated else f"({inner})"
        case Random():
            share = test.numerator / 2**31
            return f"chance of {1 - share if test.negated else share:.11g}"
        case Nth():
            return f"{'not ' if test.negated else ''}packet {test.packet + 1} of every {test.every}"
        case Limit():
            return limit_text(test)
        case HashLimit():
            per = f" per {' and '.join(field.text for field in test.key)}" if test.key else ""
            return f"{limit_text(test)}{per}"
        case ConnectionLimit():
            whole = test.mask == (1 << family.bits) - 1
            network = "address" if whole else f"network /{test.mask.bit_count()}"
            whose = f"{'source' if test.side is SetDirection.SRC else 'destination'} {network}"
            return f"{'more than' if test.above else 'at most'} {test.limit} connections of the {whose}"
        case Quota():
            return f"{'after' if test.negated else 'within'} the first {test.size} bytes that come here"
        case SetTest():
            sides = ",".join(test.directions)
            of = f"set {test.name} ({sides})"
            entry = f"excluded by a nomatch entry of {of}" if test.nomatch else f"in {of}"
            return f"{'not ' if test.negated else ''}{entry}"
        case ConnLabel(number=label, add=add):
            if add:
                return f"its connection {'cannot get' if test.negated else 'gets'} label {label}"
            return f"its connection {'does not have' if test.negated else 'has'} label {label}"
        case ClusterShare(total=total, nodes=nodes):
            own_nodes = ", ".join(str(n + 1) for n in range(total) if nodes >> n & 1)
            whose = f"for node {own_nodes} of {total} by its connection's source"
            return f"it is {'not ' if test.negated else ''}{whose}"
        case SetUpdate():
            return f"it {update_text(test)}"
        case Account():
            return f"counted in nfacct object {test.name}"
        case CgroupTest(path=path):
            return f"a socket of cgroup {path} {'does not send' if test.negated else 'sends'} it"
        case WordTest():
            return f"{'not ' if test.negated else ''}the bytes {words_text(test.words)}"
        case HeaderOptions():
            return options_text(test)
        case BytecodeTest():
            return f"the program {bytecode_text(test.program)} takes its bytes"
        case Recent():
            return recent_text(test)
        case _:
            assert_never(test)


def _to(addresses: Interval | None, ports: NatPorts, family: Family) -> str:
    text = "" if addresses is None else _interval_text(Field.DADDR, addresses, family)
    if ports.interval is not None:
        number = _interval_text(Field.DPORT, ports.interval, family)
        text = f"[{text}]" if text and family is Family.IP6 else text
        text = f"{text}:{number}" if text else f"to port {number}"
    if ports.base is not None:
        text += f", as far from the first port as the old one is from {ports.base}"
    if ports.random or ports.fully_random:
        text += " with a random port"
    if ports.persistent:
        text += " and the same address for each source"
    return text.strip()


def _flags(flags: int) -> str:
    return " and ".join(flag.name for flag in TcpFlag if flags & flag and flag.name)


def _whereto(addresses: Interval | None, ports: NatPorts, family: Family) -> str:
    text = _to(addresses, ports, family)
    return text if addresses is None else f"to {text}"


def action_text(action: Action, family: Family) -> str:
    """Return a description of an action, for example ``sets mark 0x4000``."""
    match action:
        case Accept():
            return "accepts"
        case Drop():
            return "drops"
        case Return():
            return "returns"
        case Jump():
            return f"goes through {action.chain}"
        case Goto():
            return f"goes to {action.chain} without coming back"
        case Reject():
            return f"rejects with {action.kind}"
        case SetMark(value=value, mask=mask):
            return marking_text("mark", value, mask)
        case HashMark():
            return hash_mark_text(action)
        case LimitMss(mss=mss):
            most = "the value that fits the path MTU" if mss is None else str(mss)
            return f"lowers the MSS announced in a SYN to {most}"
        case Proxy(address=address, port=port):
            where = f"port {port}" if port else "its own port"
            where += "" if address is None else f" of {format_address(family, address)}"
            return f"hands it to the transparent proxy at {where}, and drops it if none listens there"
        case Queue(first=first, last=last, bypass=bypass):
            queue = f"queue {first}" if first == last else f"one of the queues {first} to {last}"
            without = "lets it pass the table" if bypass else "drops it"
            return f"hands it to the program at {queue}, and {without} if none reads it"
        case StripOptions(options=options):
            return f"removes the TCP options {', '.join(map(str, options))}" if options else "changes nothing"
        case SetConnmark(value=value, mask=mask, shift=0):
            return marking_text("connmark", value, mask)
        case SetConnmark(value=value, mask=mask, shift=shift):
            by = f"{'left' if shift > 0 else 'right'} by {abs(shift)}"
            return f"{marking_text('connmark', value, mask)}, then shifts connmark {by}"
        case SaveMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            return copying_text("mark", nfmask, shift, "connmark", ctmask)
        case RestoreMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            return copying_text("connmark", ctmask, shift, "mark", nfmask)
        case RestoreSocketMark():
            return "sets mark to that of the socket that takes it, if the socket has a mark"
        case SetTos(value=value, mask=0xFC) if not value & ~0xFC:
            return f"sets DSCP {value >> 2:#x}"
        case SetTos(value=value, mask=0x03) if not value & ~0x03:
            return f"sets the ECN bits to {value}"
        case SetTos(value=value, mask=mask):
            return marking_text("TOS", value, mask, 8)
        case TranslatePrefix(source=source, new=new, bits=bits):
            side = "source" if source else "destination"
            return f"replaces the prefix of its {side} by {format_address(family, new)}/{bits}"
        case SetTcpFlags(value=value, mask=mask):
            put, cleared = _flags(value & mask), _flags(mask & ~value)
            if put and cleared:
                return f"sets the TCP flags {put}, and clears {cleared}"
            return f"sets the TCP flags {put}" if put else f"clears the TCP flags {cleared}"
        case SetTtl(value=value):
            return f"sets the TTL to {value}"
        case AddTtl(number=by):
            return f"{'raises' if by > 0 else 'lowers'} the TTL by {abs(by)}"
        case Dnat():
            return f"sends {_whereto(action.addresses, action.ports, family)}"
        case Snat():
            origin = _to(action.addresses, action.ports, family).removeprefix("to ")
            return f"makes it come from {origin}"
        case Masquerade():
            ports = _to(None, action.ports, family)
            return f"masquerades {ports}".rstrip()
        case Redirect():
            ports = _to(None, action.ports, family)
            return f"redirects to this node {ports.replace('to port', 'at port')}".rstrip()
        case Netmap(network=network, mask=mask, side=side):
            which = "its address" if side is None else f"its {'source' if side == 'src' else 'destination'}"
            return f"maps {which} into {format_address(family, network)}/{mask.bit_count()}"
        case Log():
            return f"logs it{f' as {action.prefix!r}' if action.prefix else ''}"
        case NfLog():
            prefix = f" as {action.prefix!r}" if action.prefix else ""
            return f"logs it to NFLOG group {action.group}{prefix}"
        case Audit():
            return "writes an audit record"
        case Trace():
            return "traces it from this rule on"
        case Classify(priority=priority):
            return f"puts it into class {priority >> 16:x}:{priority & 0xFFFF:x} of its queue"
        case Duplicate(gateway=gateway, device=device):
            through = f" through {device}" if device else ""
            return f"sends a copy to {format_address(family, gateway)}{through}"
        case External(target=target):
            return _EXTERNAL[target]
        case Secmark(context=context):
            return f"labels it as {context!r} for a security module"
        case ConnSecmark(restore=restore):
            if restore:
                return "gives it the label of its connection for a security module, unless it has one"
            return "gives its connection the packet's label for a security module, unless that has one"
        case SynProxy():
            return "answers a SYN in place of the server, and checks an ACK for the cookie of this answer"
        case FillChecksum():
            return "computes its checksum if that was left to the network card"
        case NoTrack():
            return "keeps it out of conntrack"
        case Template():
            return _template_text(action)
        case _:
            assert_never(action)


def _template_text(action: Template) -> str:
    parts = []
    if action.zone != 0:
        zone = "the zone of its mark" if action.zone is None else f"zone {action.zone}"
        side = "" if action.side is ZoneSide.BOTH else f" for the {action.side} direction"
        parts.append(f"makes conntrack look it up in {zone}{side}")
    if action.helper:
        parts.append(f"gives a new connection the helper {action.helper}")
    if action.timeout:
        parts.append(f"gives a new connection the timeouts {action.timeout}")
    if action.events is not None or action.expectation_events is not None:
        names = f"the events {', '.join(action.events)}" if action.events else "no events"
        parts.append(f"reports {names} of a new connection")
        names = ", ".join(action.expectation_events or ())
        parts.append(f"reports {f'the events {names}' if names else 'no events'} of its expectations")
    return " and ".join(parts) or "makes conntrack track it normally, regardless of later rules of table raw"


_EXTERNAL: Final = {
    ExternalTarget.IDLETIMER: "restarts a timer that reports the absence of packets",
    ExternalTarget.LED: "lights an LED",
    ExternalTarget.RATEEST: "counts it in an estimator of rates",
}
