"""Tests and actions without an exact form in nftables.

* Later fragments of IPv6 cannot be told apart: nft finds their extension header alone.
* ``fib daddr type`` gives an address one type. ``addrtype`` of IPv6 calls the node's own UNICAST as well
  (``match_type6``), so that LOCAL alone means the same.
* A string of nft ends at the next quote; it has no escapes.
* The kernel's NAT expression has no place for the port that others are counted from (``nft_nat``).
"""

from __future__ import annotations

import re
from typing import Final

from translate.ir import (
    AddressType,
    Dnat,
    Family,
    Field,
    FieldTest,
    FillChecksum,
    Interval,
    Log,
    Masquerade,
    Name,
    NfLog,
    Proxy,
    Redirect,
    Reject,
    RejectKind,
    Snat,
    Template,
    Value,
)
from translate.nft.legal import Part
from translate.nft.limits.refusal import CannotSay

__all__ = ["check_field", "check_statement", "check_test", "check_value"]

_PLAIN_INTERFACE: Final = re.compile(r"[A-Za-z0-9._@-]+")
_ADDRESS_TYPES: Final = frozenset(field for field in Field if field.name.startswith("FIB_"))


def check_test(test: FieldTest, family: Family) -> None:
    """Raise CannotSay for a test that nft cannot express."""
    check_field(test.field, family)
    for value in test.values:
        check_value(test.field, value, family)


def check_field(field: Field, family: Family) -> None:
    """Raise CannotSay for a field that nft cannot read."""
    if field is Field.FRAGMENT and family is Family.IP6:
        raise CannotSay("ipv6-fragment", "later fragments of IPv6 cannot be told apart here")


def check_value(field: Field, value: Value, family: Family) -> None:
    """Raise CannotSay for a value that nft cannot compare with ``field``."""
    match value:
        case Name(text=text):
            if not _PLAIN_INTERFACE.fullmatch(text):
                raise CannotSay("interface-name", f"nft cannot spell the interface name {text!r}")
        case Interval(low=low, high=high):
            if field in _ADDRESS_TYPES and family is Family.IP6 and not low == high == AddressType.LOCAL:
                reason = "of the types of an IPv6 address, only LOCAL means the same in nftables"
                raise CannotSay("addrtype6", reason)


def check_statement(part: Part, family: Family) -> None:
    """Raise CannotSay for an action that nft has no statement for."""
    match part:
        case Dnat(ports=ports) | Snat(ports=ports) | Masquerade(ports=ports) | Redirect(ports=ports):
            if ports.base is not None:
                reason = (
                    "nftables has no place for the port that others are counted from (nft_nat), and a map"
                    " of ports needs a rule that tests them and gives each one a port of its own"
                )
                raise CannotSay("nat-port-shift", reason)
        case Reject(kind=kind):
            ours = "icmp6" if family is Family.IP6 else "icmp-"
            if kind is not RejectKind.TCP_RESET and not kind.value.startswith(ours):
                raise CannotSay("reject-kind", f"{kind.value} is no answer of this family")
        case Log(prefix=prefix) | NfLog(prefix=prefix):
            if '"' in prefix or (prefix and not prefix.isprintable()):
                raise CannotSay("log-prefix", f"nft cannot quote the prefix {prefix!r}")
        case Proxy(address=None, port=0):
            raise CannotSay("tproxy", "nft takes no tproxy without an address or a port")
        case Template():
            _check_template(part)
        case FillChecksum():
            reason = (
                "nftables has no statement that computes a checksum which was left to the network card;"
                " on a device, tc's action csum does"
            )
            raise CannotSay("checksum", reason)
        case _:
            pass


def _check_template(template: Template) -> None:
    if template.zone is None:
        reason = "nft takes no number for a zone from the packet's mark: it has types, and they differ"
        raise CannotSay("ct-zone-mark", reason)
    assert not template.helper, "moved behind conntrack"
    what = (
        ("a timeout policy", template.timeout),
        ("a choice of events", template.events is not None or template.expectation_events is not None),
    )
    for name, given in what:
        if given:
            reason = f"nftables gives a connection {name} only behind conntrack, where raw's rules are over"
            raise CannotSay("ct-template", reason)
