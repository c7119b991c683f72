"""Tests and actions without an exact form in nftables.

* Later fragments of IPv6 cannot be tested: nft does not read past their extension header.
* ``fib daddr type`` gives an address one type. ``addrtype`` of IPv6 gives the node's own addresses the type
  UNICAST as well (``match_type6``), so LOCAL is the only type that means the same in both.
* A string of nft ends at the next quote; it has no escapes.
* In IPv6, iptables finds the protocol behind AH, so ``-p ah`` never matches (``ip6_packet_match``). nft stops
  at AH and matches it (``IP6_FH_F_AUTH`` in ``__nft_set_pktinfo_ipv6_validate``).
* The kernel's NAT expression has no base port of a port shift (``nft_nat``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from translate.ir import (
    AddressType,
    Dnat,
    Duplicate,
    External,
    ExternalTarget,
    Family,
    Field,
    FieldTest,
    HashMark,
    Interval,
    Log,
    Masquerade,
    Name,
    NfLog,
    Redirect,
    Reject,
    RejectKind,
    Secmark,
    Snat,
    SynProxy,
    Template,
    TranslatePrefix,
    Value,
)
from translate.ir.chunks import CHUNKS
from translate.nft.legal import Part
from translate.nft.limits.refusal import CannotSay
from translate.nft.timers import LAST_SECOND

__all__ = ["check_field", "check_key", "check_statements", "check_test"]

_PLAIN_INTERFACE: Final = re.compile(r"[A-Za-z0-9._@-]+")
_HELPER_NAME: Final = 15
"""The longest name of a helper (``NF_CT_HELPER_NAME_LEN``, with its NUL)."""
_ADDRESS_TYPES: Final = frozenset(field for field in Field if field.name.startswith("FIB_"))


_PORTS: Final = frozenset({Field.BRIDGED_ON, Field.BRIDGE_PORT_IN, Field.BRIDGE_PORT_OUT})
_AH: Final = 51
_RESTRICTED: Final = _ADDRESS_TYPES | {
    Field.L4PROTO,
    Field.FRAGMENT,
    Field.SCTP_CHUNKS,
    Field.EUI64,
    Field.DCCP_OPTIONS,
    Field.BRIDGED_ON,
    Field.IPSEC_IN_STATES,
    Field.IPSEC_OUT_STATES,
    Field.CT_EXPIRES,
    *(field for field in Field if field.is_name),
}
"""The fields that nft cannot read, or not compare with every value."""
_MOST_SECONDS: Final = (1 << 32) - 1
_ONE_CHUNK: Final = frozenset(1 << kind for kind in CHUNKS)


def check_test(test: FieldTest, family: Family) -> None:
    """Raise CannotSay for a test that nft cannot express."""
    if test.field not in _RESTRICTED:
        return
    check_field(test.field, family)
    if test.field is Field.SCTP_CHUNKS and test.mask not in _ONE_CHUNK:
        raise CannotSay("sctp-chunks", "nftables tests for one chunk, not for chunks of all other types")
    for value in test.values:
        _check_value(test.field, value, family)


def check_field(field: Field, family: Family) -> None:
    """Raise CannotSay for a field that nft cannot read."""
    if field is Field.FRAGMENT and family is Family.IP6:
        raise CannotSay("ipv6-fragment", "nftables cannot test for later fragments of IPv6")
    if field is Field.EUI64:
        raise CannotSay("eui64", "nftables compares a field with constants, not with another field")
    if field is Field.DCCP_OPTIONS:
        reason = "nftables takes the options of DCCP from 2 to 31 for single bytes, xt_dccp for longer ones"
        raise CannotSay("dccp-options", reason)
    if field in _PORTS:
        raise CannotSay("bridge-port", "nftables sees the bridge, but not its ports, in tables of ip and ip6")
    if field in (Field.IPSEC_IN_STATES, Field.IPSEC_OUT_STATES):
        reason = "nftables cannot test the protocol, mode or tunnel of a state of IPsec, or any state twice"
        raise CannotSay("ipsec-states", reason)


def check_key(fields: Sequence[Field], key: Sequence[Value], family: Family) -> None:
    """Raise CannotSay for a key of a lookup in which nft cannot compare a value with its field."""
    for field, value in zip(fields, key, strict=True):
        _check_value(field, value, family)


def _check_value(field: Field, value: Value, family: Family) -> None:
    match value:
        case Name(text=text) if field is Field.CT_HELPER:
            if not _PLAIN_INTERFACE.fullmatch(text) or len(text) > _HELPER_NAME:
                raise CannotSay("helper-name", f"nft cannot spell the name of a helper {text!r}")
        case Name(text=text):
            if not _PLAIN_INTERFACE.fullmatch(text):
                raise CannotSay("interface-name", f"nft cannot spell the interface name {text!r}")
        case Interval(low=low, high=high) if field is Field.CT_EXPIRES:
            if low > LAST_SECOND or LAST_SECOND <= high < _MOST_SECONDS:
                reason = "ct expiration of nftables ends after 49 days, at 4,294,967 seconds"
                raise CannotSay("ct-expire", reason)
        case Interval(low=low, high=high):
            if field is Field.L4PROTO and family is Family.IP6 and low == high == _AH:
                reason = "in IPv6, iptables never finds AH as the protocol, but nftables does"
                raise CannotSay("ah6-protocol", reason)
            if field in _ADDRESS_TYPES and family is Family.IP6 and not low == high == AddressType.LOCAL:
                reason = "LOCAL is the only type of IPv6 addresses that means the same in nftables"
                raise CannotSay("addrtype6", reason)


_CHECKED: Final = frozenset(
    {
        *(Dnat, Snat, Masquerade, Redirect, Reject, Log, NfLog, Template),
        *(Duplicate, External, HashMark, Secmark, SynProxy, TranslatePrefix),
    }
)

_LACKING: Final = {
    ExternalTarget.IDLETIMER: "timers that report the absence of packets",
    ExternalTarget.LED: "LED triggers",
    ExternalTarget.RATEEST: "estimators of rates",
}


def check_statements(parts: Sequence[Part], family: Family) -> None:
    """Raise CannotSay for an action that nft has no statement for."""
    for part in parts:
        if type(part) in _CHECKED:
            _check_statement(part, family)


def _check_statement(part: Part, family: Family) -> None:
    match part:
        case Dnat(ports=ports) | Snat(ports=ports) | Masquerade(ports=ports) | Redirect(ports=ports):
            if ports.base is not None:
                reason = (
                    "nftables has no base port for a port shift (nft_nat); a map of ports needs a rule that"
                    " tests the destination port and gives each port a different new one"
                )
                raise CannotSay("nat-port-shift", reason)
        case Reject(kind=kind):
            prefix_of_family = "icmp6" if family is Family.IP6 else "icmp-"
            if kind is not RejectKind.TCP_RESET and not kind.value.startswith(prefix_of_family):
                raise CannotSay("reject-kind", f"{kind.value} does not exist in this address family")
        case Log(prefix=prefix) | NfLog(prefix=prefix):
            if '"' in prefix or (prefix and not prefix.isprintable()):
                raise CannotSay("log-prefix", f"nft cannot quote the prefix {prefix!r}")
        case TranslatePrefix():
            reason = "nftables cannot adjust a word of an address so that checksums stay valid"
            raise CannotSay("npt", reason)
        case HashMark():
            reason = (
                "HMARK hashes the lower address first and then flips bits of the hash by the protocol"
                " (hmark_hash); the hash of nftables has the fields in a fixed order"
            )
            raise CannotSay("hmark", reason)
        case Template():
            _check_template(part)
        case Duplicate(device=device):
            if device and not _PLAIN_INTERFACE.fullmatch(device):
                raise CannotSay("interface-name", f"nft cannot spell the interface name {device!r}")
        case Secmark(context=context):
            if '"' in context or not context.isprintable() or context.endswith("*"):
                raise CannotSay("secmark-label", f"nft cannot quote the label {context!r}")
        case External(target=target):
            raise CannotSay("external", f"nftables has no {_LACKING[target]}")
        case SynProxy(ecn=True):
            raise CannotSay("synproxy-ecn", "nft has no option of synproxy for ECN")
        case SynProxy() if family is Family.IP6:
            reason = (
                "nftables checks the TCP checksum as that of IPv4 (nft_synproxy_do_eval), and drops packets"
                " whose checksum the network card has not verified"
            )
            raise CannotSay("synproxy6", reason)
        case _:
            pass


def _check_template(template: Template) -> None:
    if template.zone is None:
        reason = "nft does not accept the packet's mark as a zone, because their types differ"
        raise CannotSay("ct-zone-mark", reason)
    assert not template.helper, "moved after conntrack"
    setting = (
        ("a timeout policy", template.timeout),
        ("a choice of events", template.events is not None or template.expectation_events is not None),
    )
    for name, present in setting:
        if present:
            reason = f"nftables gives a connection {name} only after conntrack, when raw's rules have run"
            raise CannotSay("ct-template", reason)
