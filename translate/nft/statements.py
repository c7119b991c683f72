"""Actions as nft statements.

* NAT ends the table in nft as in x_tables (``nft_nat_eval`` sets the verdict of
  ``nf_nat_setup_info``), and takes the same range flags.
* A port in ``dnat``, ``snat``, ``masquerade`` or ``redirect`` is refused by nft unless the same rule asks
  for a transport protocol, which ``needs_transport`` is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from translate.ir import (
    Accept,
    Action,
    Dnat,
    Drop,
    Family,
    Goto,
    Interval,
    Jump,
    Log,
    Masquerade,
    NatPorts,
    NfLog,
    NoTrack,
    Redirect,
    Reject,
    RejectKind,
    RestoreMark,
    Return,
    SaveMark,
    SetConnmark,
    SetMark,
    Snat,
    format_address,
)
from translate.nft.connmarks import connmark_rules, marked
from translate.nft.logging import log_statement
from translate.nft.refusal import CannotSay

__all__ = ["comes_back", "nat_flags", "needs_transport", "statement", "verdict"]

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


def verdict(action: Action, chains: Mapping[str, str]) -> str | None:
    """Return the action as a verdict that a map can hold, or None when it is none."""
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
            return None


def comes_back(action: Action) -> bool:
    """Whether the next rule of the chain may follow after this action."""
    return isinstance(action, Jump | SetMark | SetConnmark | SaveMark | RestoreMark | NoTrack | Log | NfLog)


def needs_transport(action: Action) -> bool:
    """Whether nft asks for a transport protocol in the rule."""
    return isinstance(action, Dnat | Snat | Masquerade | Redirect) and action.ports.interval is not None


def statement(action: Action, family: Family, chains: Mapping[str, str]) -> str:
    """Return the action as a statement; ``chains`` maps qualified names to nft's. Raises CannotSay."""
    match action:
        case SetMark(value=value, mask=mask):
            return f"meta mark set {marked('meta mark', value, mask)}"
        case SetConnmark() | SaveMark() | RestoreMark():
            (rule,) = connmark_rules(action)  # emit has put aside what takes more
            return " ".join(rule)
        case Log() | NfLog():
            return log_statement(action)
        case NoTrack():
            return "notrack"
        case Dnat(addresses=addresses, ports=ports):
            return _nat("dnat to ", addresses, ports, family)
        case Snat(addresses=addresses, ports=ports):
            return _nat("snat to ", addresses, ports, family)
        case Masquerade(ports=ports):
            return _nat("masquerade to ", None, ports, family)
        case Redirect(ports=ports):
            return _nat("redirect to ", None, ports, family)
        case Reject(kind=kind):
            ours = "icmp6" if family is Family.IP6 else "icmp-"
            if kind is not RejectKind.TCP_RESET and not kind.value.startswith(ours):
                raise CannotSay("reject-kind", f"{kind.value} is no answer of this family")
            return f"reject with {_REJECTS[kind]}"
        case Accept() | Drop() | Return() | Jump() | Goto():
            found = verdict(action, chains)
            assert found is not None
            return found
        case _:
            assert_never(action)


def _nat(head: str, addresses: Interval | None, ports: NatPorts, family: Family) -> str:
    if ports.base is not None:
        reason = "nftables has no place for the port that others are counted from (nft_nat)"
        raise CannotSay("nat-port-shift", reason)
    target = ""
    if addresses is not None:
        low, high = (_address(family, a) for a in (addresses.low, addresses.high))
        target = low if addresses.is_point else f"{low}-{high}"
    if ports.interval is not None:
        low, high = str(ports.interval.low), str(ports.interval.high)
        target += f":{low}" if ports.interval.is_point else f":{low}-{high}"
    text = f"{head}{target}" if target else head.removesuffix(" to ")
    return text + nat_flags(ports)


def nat_flags(ports: NatPorts) -> str:
    """Return the flags behind a NAT statement, with the blank before them."""
    flags = [
        flag
        for flag, wanted in (
            ("random", ports.random),
            ("fully-random", ports.fully_random),
            ("persistent", ports.persistent),
        )
        if wanted
    ]
    return f" {','.join(flags)}" if flags else ""


def _address(family: Family, value: int) -> str:
    text = format_address(family, value)
    return f"[{text}]" if family is Family.IP6 else text
