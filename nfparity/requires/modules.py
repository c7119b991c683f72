"""The kernel module of each match, target, table and set type of iptables.

The kernel asks for a match or target by an alias, ``ipt_NAME`` or ``ip6t_NAME`` (``xt_request_find_match``,
``xt_request_find_target``), and for a set type by ``ip_set_TYPE`` (``ip_set_create``). The module with the
alias is usually called ``xt_NAME``; the tables here are the exceptions, as ``modinfo`` prints them for
Linux 6.1 and 6.12.
"""

from __future__ import annotations

from typing import Final

from backends.model.variant import Variant
from translate.ir import Family, TableName

__all__ = ["helper_module", "match_module", "set_module", "table_modules", "target_module"]

_MATCHES: Final = {
    "hl": "xt_hl",
    "icmp": "xt_tcpudp",  # in Linux 6.1 in ip_tables, and ip6_tables
    "icmp6": "xt_tcpudp",
    "icmpv6": "xt_tcpudp",
    "tcp": "xt_tcpudp",
    "tos": "xt_dscp",
    "ttl": "xt_hl",
    "udp": "xt_tcpudp",
}
_TARGETS: Final = {
    "CONNMARK": "xt_connmark",
    "DNAT": "xt_nat",
    "DNPT": "ip6t_NPT",
    "MARK": "xt_mark",
    "NOTRACK": "xt_CT",
    "SET": "xt_set",
    "SNAT": "xt_nat",
    "SNPT": "ip6t_NPT",
    "TOS": "xt_DSCP",
    "TTL": "xt_HL",
}
_FAMILY_MATCHES: Final = frozenset({"ah", "rpfilter"})
_ONLY_IP6: Final = {
    "dst": "ip6t_hbh",
    **{name: f"ip6t_{name}" for name in ("eui64", "frag", "hbh", "ipv6header", "mh", "rt", "srh")},
}
_FAMILY_TARGETS: Final = frozenset({"CLUSTERIP", "ECN", "REJECT", "SYNPROXY", "ULOG"})
_BUILT_IN: Final = frozenset({"ACCEPT", "DROP", "RETURN", "QUEUE"})
_HELPERS: Final = {"Q.931": "h323", "RAS": "h323", "H.245": "h323", "snmp_trap": "snmp"}


def match_module(name: str, family: Family) -> str:
    """Return the module of a match as ``-m`` or ``-p`` names it."""
    if name in _ONLY_IP6:
        return _ONLY_IP6[name]
    return f"{_prefix(family)}_{name}" if name in _FAMILY_MATCHES else _MATCHES.get(name, f"xt_{name}")


def target_module(name: str, family: Family) -> str | None:
    """Return the module of a target, or None for a verdict, which is a part of x_tables."""
    if name in _BUILT_IN:
        return None
    return f"{_prefix(family)}_{name}" if name in _FAMILY_TARGETS else _TARGETS.get(name, f"xt_{name}")


def set_module(kind: str) -> str:
    """Return the module of an ipset type, for example of ``hash:ip,port``."""
    method, _, data = kind.partition(":")
    return f"ip_set_{method}_{data.replace(',', '')}"


def helper_module(name: str) -> str:
    """Return the module of a conntrack helper as ``--helper`` names it, for example ``ftp``."""
    return f"nf_conntrack_{_HELPERS.get(name, name.replace('-', '_'))}"


def table_modules(table: TableName, family: Family, variant: Variant) -> tuple[str, ...]:
    """Return the modules that hold a table's rules."""
    if variant is Variant.NFT:
        nat = ("nft_chain_nat",) if table is TableName.NAT else ()
        return ("nf_tables", "nft_compat", *nat)
    number = "6" if family is Family.IP6 else ""
    return (f"ip{number}_tables", f"ip{number}table_{table.value}")


def _prefix(family: Family) -> str:
    return "ipt" if family is Family.IP else "ip6t"
