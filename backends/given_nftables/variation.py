"""Nftables rules that may treat two equal flows differently although no trace shows it.

A trace shows the random choices (``numgen``) on a packet's way (:mod:`.trace`). Of the other words of nft,
those that are known to depend on nothing but the packets of a flow and the node are listed here. A rule with
any other word may vary.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["declaration_may_vary", "rule_may_vary"]

_NAMES: Final = re.compile(r'"[^"\n]*"|\b(?:jump|goto) \S+|@(?!(?:th|nh|ll|ih),)\S+| # count \d+')
"""Strings, names of chains and sets, and the number of elements that newer versions of nft list."""
_ADDRESS: Final = re.compile(r"(?<![\w.-])(?:[\da-f]{0,4}:){2,}[\da-f.]*")
"""An address of IPv6 or of Ethernet, which may begin with a letter."""
_TRACED: Final = re.compile(r"\bnumgen random\b")
_PORTS_ONLY: Final = re.compile(r"(\b(?:masquerade|snat)\b.*?) (?:(?:fully-)?random|persistent)[a-z,-]*\s*$")
"""The flags of ``masquerade`` and ``snat``: they choose the source port only."""
_LIFETIME: Final = re.compile(r"\btimeout \d\S*")
"""The lifetime of an element that a rule adds, which is longer than a flow."""
_RANGE: Final = re.compile(
    r"\b(?:dnat (?:\S+ )*?|redirect )to \S+-\S|: [\da-f.:\[\]]+(?: \. \d+)?-[\d\[]", re.ASCII
)
"""A range from which a destination is chosen, also as the data of a map."""
_WORD: Final = re.compile(r"(?<![\w.-])[a-z][\w-]*|@")

_STATEMENTS: Final = """
accept drop return continue vmap map set add update counter packets bytes log prefix level flags group snaplen
reject with type code dnat snat masquerade redirect to notrack mod offset or and xor comment
"""
_PACKET_FIELDS: Final = """
ip ip6 ether tcp udp udplite sctp dccp th icmp icmpv6 saddr daddr sport dport protocol nexthdr length ttl
hoplimit dscp frag-off option maxseg size exists missing
"""
_PATH_AND_CONNECTION: Final = """
meta mark iif oif iifname oifname iiftype oiftype iifgroup oifgroup pkttype l4proto nfproto fib rt mtu
ct state status direction original reply zone proto-src proto-dst l3proto
"""
_CONSTANTS: Final = """
established related new invalid untracked snat dnat confirmed assured seen-reply expected
fin syn rst psh ack urg ecn cwr local unicast broadcast multicast anycast unspec host other ipv4 ipv6
icmpx ipv6-icmp esp ah comp gre igmp ipencap vlan arp reset
port-unreachable host-unreachable net-unreachable prot-unreachable admin-prohibited host-prohibited
net-prohibited no-route addr-unreachable
echo-request echo-reply destination-unreachable packet-too-big time-exceeded parameter-problem source-quench
timestamp-request timestamp-reply address-mask-request address-mask-reply redirect router-advertisement
router-solicitation nd-router-solicit nd-router-advert nd-neighbor-solicit nd-neighbor-advert nd-redirect
mld-listener-query mld-listener-report mld-listener-done mld-listener-reduction mld2-listener-report
emerg alert crit err warn notice info debug all
cs0 cs1 cs2 cs3 cs4 cs5 cs6 cs7 af11 af12 af13 af21 af22 af23 af31 af32 af33 af41 af42 af43 ef
"""
_DECLARATIONS: Final = """
typeof constant interval dynamic timeout elements auto-merge gc-interval verdict
ipv4_addr ipv6_addr ether_addr inet_proto inet_service ifname icmp_type icmpv6_type
"""
_RULE_WORDS: Final = frozenset(f"{_STATEMENTS}{_PACKET_FIELDS}{_PATH_AND_CONNECTION}{_CONSTANTS}".split())
_DECLARATION_WORDS: Final = _RULE_WORDS | frozenset(_DECLARATIONS.split())


def rule_may_vary(rule: str) -> bool:
    """Return whether a rule in the kernel's listing may depend on more than a flow, ``numgen`` and sets."""
    plain = _NAMES.sub("", rule)
    text = _PORTS_ONLY.sub(r"\1", _LIFETIME.sub("", _TRACED.sub("", plain)))
    return _other_words(text, _RULE_WORDS) or _RANGE.search(plain) is not None


def declaration_may_vary(line: str) -> bool:
    """Return whether lookups in a set or map may vary, by a line of its declaration in the kernel's listing.

    Elements that expire are an example, or elements with a limit.
    """
    plain = _NAMES.sub("", line)
    return _other_words(plain, _DECLARATION_WORDS) or _RANGE.search(plain) is not None


def _other_words(text: str, known: frozenset[str]) -> bool:
    return not known.issuperset(_WORD.findall(_ADDRESS.sub("", text)))
