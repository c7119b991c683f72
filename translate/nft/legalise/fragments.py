"""Guards against later fragments, of which nft would read data as a transport header.

A later fragment (fragment offset > 0) has no transport header, so a match on one must fail. It does fail in
``nft_payload_eval``. But ``nft_payload_fast_eval``, which takes loads of 1, 2 and 4 aligned bytes, does not
look at the offset, and neither does ``nft_exthdr_sctp_eval``. In IPv4 they read the fragment's data. In IPv6
they read the IPv6 header itself, because ``ipv6_find_hdr`` leaves the offset 0: ``udp dport`` is then a part
of the flow label. ``tcp option … missing`` holds for any packet in which no header is found.

*Where no guard is needed.* Conntrack reassembles fragments in PREROUTING and OUTPUT at priority -400, before
any of our chains (``nf_ct_netns_get``, ``nf_defrag_ipv4_enable``). Conntrack is active as soon as one loaded
rule has an expression that needs it, also in a chain that no packet reaches. So rulesets with NAT have no
guards.

*The guard* stands before the first part of a rule that reads a transport header, so that the rule ends where
the other decisions of this package expect it. In IPv4 it is a test of the offset. In IPv6 the offset is in an
extension header that whole packets do not have, and two matches cannot be alternatives in one rule. There the
guard is a load of 3 bytes, which ``nft_payload_eval`` takes, compared with nothing (:class:`HasTransport`).

*No guard in IPv4 for the key of* ``-m hashlimit``: ``hashlimit_init_dst`` reads the ports of later fragments
as ``nft_payload_fast_eval`` does. In IPv6 it counts them under port 0, which nft cannot do: refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from translate.dataclass import replace
from translate.errors import Refusal
from translate.ir import AUTHENTICATION, Family, Field, FieldTest, Interval, Proxy
from translate.nft.legal import (
    DnatTo,
    HasTransport,
    InSet,
    LegalChain,
    Part,
    PortOf,
    SetChange,
    TakenInSet,
    TransportByte,
    VerdictOf,
    WordMatch,
)
from translate.nft.legalise.tracking import needs_connections
from translate.nft.legalise.words import excludes_later_fragments, tests_for_first
from translate.nft.limits.refusal import CannotSay

__all__ = ["guard_transport", "reassembles"]

_TRANSPORT: Final = frozenset(
    {
        *(Field.SPORT, Field.DPORT, Field.ICMP_TYPE, Field.ICMP_CODE),
        *(Field.TCP_FLAGS, Field.TCP_OPTIONS, Field.SCTP_CHUNKS, Field.DCCP_TYPE),
        *(Field.ESP_SPI, Field.IPCOMP_CPI, *AUTHENTICATION),
    }
)
"""Fields that nft would find in a later fragment; ``tcp option maxseg size`` it would not
(``nft_tcp_header_pointer``)."""
_WHOLE: Final = FieldTest(field=Field.FRAGMENT, values=(Interval.point(0),))


def reassembles(chains: Iterable[LegalChain]) -> bool:
    """Return whether the kernel reassembles fragments before these chains, because of their rules."""
    return any(
        isinstance(part, Proxy) or needs_connections(part)
        for chain in chains
        for rule in chain.rules
        for part in rule.parts
    )


def guard_transport(chains: Iterable[LegalChain], family: Family) -> Iterator[Refusal]:
    """Put guards into rules that later fragments reach; yield a refusal where no guard is exact."""
    guard: Part = _WHOLE if family is Family.IP else HasTransport()
    for chain in chains:
        for index, rule in enumerate(chain.rules):
            at = next((i for i, part in enumerate(rule.parts) if _needs_guard(part, family)), None)
            if at is None or any(map(_is_guard, rule.parts[:at])):
                continue
            if isinstance(rule.parts[at], TakenInSet):
                yield _COUNTED_APART.at(rule.origin)
                continue
            chain.rules[index] = replace(rule, parts=(*rule.parts[:at], guard, *rule.parts[at:]))


_COUNTED_APART: Final = CannotSay(
    "hashlimit-ports",
    "xt_hashlimit counts later fragments of IPv6 under port 0; test for a port before it, or use conntrack,"
    " which reassembles them",
)


def _needs_guard(part: Part, family: Family) -> bool:
    """Return whether nft would read a transport header, or find none, where the kernel's match is false."""
    match part:
        case FieldTest(field=field):
            return field in _TRANSPORT
        case PortOf() | TransportByte():
            return True
        case WordMatch(header=header):
            return header == "th"
        case TakenInSet(key=key) if family is Family.IP:
            return False
        case InSet(key=key) | SetChange(key=key) | TakenInSet(key=key) | VerdictOf(key=key) | DnatTo(key=key):
            return not _TRANSPORT.isdisjoint(key)
        case _:
            return False


def _is_guard(part: Part) -> bool:
    """Return whether a rule ends at the part for every later fragment."""
    match part:
        case FieldTest(field=Field.FRAGMENT):
            return excludes_later_fragments(part)
        case FieldTest(field=Field.TCP_MSS):
            return True
        case WordMatch(header="nh", offset=offset, mask=mask, values=values):
            return tests_for_first(offset, mask, values)
        case _:
            return False
