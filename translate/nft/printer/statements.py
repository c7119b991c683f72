"""Actions as nft statements.

* NAT ends the table in nft as in x_tables (``nft_nat_eval`` sets the verdict of
  ``nf_nat_setup_info``), and takes the same range flags.
* ``&`` binds tighter than ``^`` in nft.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

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
    Family,
    FillChecksum,
    Goto,
    HashMark,
    Interval,
    Jump,
    LimitMss,
    Log,
    Masquerade,
    NatPorts,
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
from translate.nft.printer.logging import log_statement

__all__ = ["nat_flags", "statement", "verdict"]

_ALL: Final = 0xFFFFFFFF
_OPTIONS: Final = {2: "maxseg", 3: "window", 4: "sack-perm", 5: "sack", 8: "timestamp"}
_REJECTS: Final = {
    RejectKind.ICMP_NET_UNREACHABLE: "icmp type net-unreachable",
    RejectKind.ICMP_HOST_UNREACHABLE: "icmp type host-unreachable",
    RejectKind.ICMP_PROTO_UNREACHABLE: "icmp type prot-unreachable",
    RejectKind.ICMP_PORT_UNREACHABLE: "icmp type port-unreachable",
    RejectKind.ICMP_NET_PROHIBITED: "icmp type net-prohibited",
    RejectKind.ICMP_HOST_PROHIBITED: "icmp type host-prohibited",
    RejectKind.ICMP_ADMIN_PROHIBITED: "icmp type admin-prohibited",
    RejectKind.ICMP6_NO_ROUTE: "icmpv6 type no-route",
    RejectKind.ICMP6_ADM_PROHIBITED: "icmpv6 type admin-prohibited",
    RejectKind.ICMP6_ADDR_UNREACHABLE: "icmpv6 type addr-unreachable",
    RejectKind.ICMP6_PORT_UNREACHABLE: "icmpv6 type port-unreachable",
    RejectKind.ICMP6_POLICY_FAIL: "icmpv6 type policy-fail",
    RejectKind.ICMP6_REJECT_ROUTE: "icmpv6 type reject-route",
    RejectKind.TCP_RESET: "tcp reset",
}


def _copied(source: str, target: str) -> str:
    """Return the statement that copies a label to a place without one.

    nft reads a label only under a mask, and lists one of all bits so that it cannot be loaded again.
    """
    return f"{target} & 0xffff == 0 {target} & 0xffff0000 == 0 {target} set {source}"


def verdict(action: Accept | Drop | Return | Jump | Goto, chains: Mapping[str, str]) -> str:
    """Return the verdict as text, the same in rules and maps."""
    match action:
        case Accept():
            return "accept"
        case Drop():
            return "drop"
        case Return():
            return "return"
        case Jump(chain=name):
            return f"jump {chains[name]}"
        case Goto(chain=name):
            return f"goto {chains[name]}"
        case _:
            assert_never(action)


def statement(action: Action, family: Family, chains: Mapping[str, str]) -> str:
    """Return the action as a statement; ``chains`` maps qualified names to nft's."""
    match action:
        case SetMark(value=value, mask=mask):
            return f"meta mark set {_marked('meta mark', value, mask)}"
        case LimitMss(mss=mss):
            return f"tcp option maxseg size set {'rt mtu' if mss is None else mss}"
        case Proxy(address=address, port=port):
            where = "" if address is None else _address(family, address)
            return f"tproxy to {where}{f':{port}' if port or not where else ''}"
        case Queue(first=first, last=last, bypass=bypass, by_processor=by_processor):
            flags = ",".join((*(["bypass"] if bypass else ()), *(["fanout"] if by_processor else ())))
            numbers = str(first) if first == last else f"{first}-{last}"
            return f"queue num {numbers} {flags}".rstrip()
        case StripOptions(options=options):
            return " ".join(f"reset tcp option {_OPTIONS.get(option, option)}" for option in options)
        case SetConnmark(value=value, mask=mask):
            return f"ct mark set {_marked('ct mark', value, mask)}"
        case SaveMark(nfmask=nfmask):
            return f"ct mark set {_masked('meta mark', nfmask)}"
        case RestoreMark(ctmask=ctmask):
            return f"meta mark set {_masked('ct mark', ctmask)}"
        case RestoreSocketMark():
            return "meta mark set socket mark"
        case SetTos(value=value, mask=mask):
            return _tos(value, mask, family)
        case SetTtl(value=value):
            return f"{'ip ttl' if family is Family.IP else 'ip6 hoplimit'} set {value}"
        case SetTcpFlags(value=value):
            return f"tcp flags set {value:#x}"
        case AddTtl() | HashMark() | TranslatePrefix():
            raise AssertionError(f"{action} is no statement")
        case Log() | NfLog():
            return log_statement(action)
        case Audit():
            return "log level audit"
        case Trace():
            return "meta nftrace set 1"
        case Classify(priority=priority):
            return f"meta priority set {priority >> 16:04x}:{priority & 0xFFFF:04x}"
        case Duplicate(gateway=gateway, device=device):
            through = f' device "{device}"' if device else ""
            return f"dup to {format_address(family, gateway)}{through}"
        case SynProxy():
            return _synproxy(action)
        case ConnSecmark(restore=restore):
            return _copied("ct secmark", "meta secmark") if restore else _copied("meta secmark", "ct secmark")
        case Secmark():
            raise AssertionError(action)  # an object (SetLabel)
        case External():
            raise AssertionError(action)  # refused (translate.nft.limits.inexpressible)
        case FillChecksum():
            raise AssertionError(action)  # no statement (translate.nft.legalise.rules)
        case NoTrack():
            return "notrack"
        case Template(zone=zone, side=side):
            return f"ct {'' if side is ZoneSide.BOTH else f'{side} '}zone set {zone}"
        case Dnat(addresses=addresses, ports=ports):
            return _nat("dnat to ", addresses, ports, family)
        case Snat(addresses=addresses, ports=ports):
            return _nat("snat to ", addresses, ports, family)
        case Masquerade(ports=ports):
            return _nat("masquerade to ", None, ports, family)
        case Redirect(ports=ports):
            return _nat("redirect to ", None, ports, family)
        case Netmap(network=network, mask=mask, side=side):
            kind_of_nat = "snat" if side is SetDirection.SRC else "dnat"
            return f"{kind_of_nat} prefix to {format_address(family, network)}/{mask.bit_count()}"
        case Reject(kind=kind):
            return f"reject with {_REJECTS[kind]}"
        case Accept() | Drop() | Return() | Jump() | Goto():
            return verdict(action, chains)
        case _:
            assert_never(action)


def _synproxy(action: SynProxy) -> str:
    words = ["synproxy"]
    words += [] if action.mss is None else [f"mss {action.mss}"]
    words += [] if action.wscale is None else [f"wscale {action.wscale}"]
    words += ["timestamp"] if action.timestamp else []
    return " ".join([*words, "sack-perm"] if action.sack_perm else words)


def _marked(name: str, value: int, mask: int) -> str:
    """Return ``(name & ~mask) ^ value`` in nft's spelling."""
    keep = ~mask & _ALL
    if keep == 0:
        return hex(value)
    if value and value == mask:
        return f"{name} | {value:#x}"
    kept = name if keep == _ALL else f"{name} & {keep:#010x}"
    return f"{kept} ^ {value:#x}" if value else kept


def _tos(value: int, mask: int, family: Family) -> str:
    """Return the statement that sets DSCP or ECN, or any bits of IPv6's traffic class."""
    for name, part, shift in (("dscp", 0xFC, 2), ("ecn", 0x03, 0)):
        if mask == part and not value & ~part:
            return f"{family.value} {name} set {value >> shift:#x}"
    assert family is Family.IP6, "the checksum of IPv4 would not be updated"
    # Two statements: nft 1.0.6 uses freed memory when it lists one that has both operators.
    changes = [f"& {0xFFFF & ~(mask << 4):#06x}"] if mask else []
    changes += [f"^ {value << 4:#x}"] if value else []
    return " ".join(f"@nh,0,16 set @nh,0,16 {change}" for change in changes)


def _masked(name: str, mask: int) -> str:
    return name if mask == _ALL else f"{name} & {mask:#010x}"


def _nat(head: str, addresses: Interval | None, ports: NatPorts, family: Family) -> str:
    target = ""
    if addresses is not None:
        target = _address(family, addresses.low)
        target += "" if addresses.is_point else f"-{_address(family, addresses.high)}"
    if ports.interval is not None:
        target += f":{ports.interval.low}"
        target += "" if ports.interval.is_point else f"-{ports.interval.high}"
    text = f"{head}{target}" if target else head.removesuffix(" to ")
    return text + nat_flags(ports)


def nat_flags(ports: NatPorts) -> str:
    """Return the flags of a NAT statement, with a space before the first; empty without flags."""
    flags = []
    if ports.random:
        flags.append("random")
    if ports.fully_random:
        flags.append("fully-random")
    if ports.persistent:
        flags.append("persistent")
    return f" {','.join(flags)}" if flags else ""


def _address(family: Family, value: int) -> str:
    text = format_address(family, value)
    return f"[{text}]" if family is Family.IP6 else text
