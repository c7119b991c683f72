"""Matches and targets: one file per family of extensions, and the registries of their names.

An extension is syntax: it declares its options and turns them into tests or an action
(:mod:`translate.read.extensions.declaration`). Only the rule reader, and the tables that report coverage,
import from here. Names that are in no registry are refused, never skipped. A file is imported when a rule
first has its extension: a node's rules use ten of them, and all files take a fifth of the program's start.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from translate.read.extensions import unmodelled
from translate.read.extensions.declaration import MatchExtension, TargetExtension
from translate.read.extensions.registry import Registry

__all__ = ["MATCHES", "TARGETS", "UNMODELLED_MATCHES", "UNMODELLED_TARGETS"]

MATCHES: Final = Registry(
    MatchExtension,
    {
        "addrtype": "addrtype.ADDRTYPE",
        "ah": "ipsec.AH",
        "bpf": "bpf.BPF",
        "cgroup": "cgroup.CGROUP",
        "cluster": "cluster.CLUSTER",
        "comment": "comment.COMMENT",
        "connbytes": "connbytes.CONNBYTES",
        "connlabel": "connlabel.CONNLABEL",
        "connlimit": "connlimit.CONNLIMIT",
        "connmark": "connmark.CONNMARK_MATCH",
        "conntrack": "conntrack.CONNTRACK",
        "cpu": "cpu.CPU",
        "dccp": "transport.DCCP",
        "devgroup": "devgroup.DEVGROUP",
        "dscp": "tos.DSCP_MATCH",
        "dst": "extensionheaders.DST",
        "ecn": "ecn.ECN_MATCH",
        "esp": "ipsec.ESP",
        "eui64": "eui64.EUI64",
        "frag": "extensionheaders.FRAG",
        "hashlimit": "hashlimit.HASHLIMIT",
        "hbh": "extensionheaders.HBH",
        "helper": "helper.HELPER",
        "hl": "ttl.HL_MATCH",
        "icmp": "icmp.ICMP",
        "icmp6": "icmp.ICMP6",
        "ipcomp": "ipsec.IPCOMP",
        "iprange": "iprange.IPRANGE",
        "ipv6header": "extensionheaders.IPV6HEADER",
        "length": "length.LENGTH",
        "limit": "limit.LIMIT",
        "mac": "link.MAC",
        "mark": "mark.MARK_MATCH",
        "mh": "mh.MH",
        "multiport": "multiport.MULTIPORT",
        "nfacct": "nfacct.NFACCT",
        "owner": "owner.OWNER",
        "physdev": "physdev.PHYSDEV",
        "pkttype": "link.PKTTYPE",
        "policy": "policy.POLICY",
        "quota": "quota.QUOTA",
        "realm": "realm.REALM",
        "recent": "recent.RECENT",
        "rpfilter": "rpfilter.RPFILTER",
        "rt": "rt.RT",
        "sctp": "transport.SCTP",
        "set": "ipset.SET",
        "socket": "socket.SOCKET",
        "srh": "srh.SRH",
        "state": "conntrack.STATE",
        "statistic": "statistic.STATISTIC",
        "string": "string.STRING",
        "tcp": "transport.TCP",
        "tcpmss": "tcpmss.TCPMSS_MATCH",
        "time": "time.TIME",
        "tos": "tos.TOS_MATCH",
        "ttl": "ttl.TTL_MATCH",
        "u32": "u32.U32",
        "udp": "transport.UDP",
    },
)
"""Every modelled match, by its name in ``-m``."""

TARGETS: Final = Registry(
    TargetExtension,
    {
        "ACCEPT": "verdict.ACCEPT",
        "AUDIT": "sideeffects.SIDE_EFFECTS",
        "CHECKSUM": "sideeffects.SIDE_EFFECTS",
        "CLASSIFY": "sideeffects.SIDE_EFFECTS",
        "CONNMARK": "connmark.CONNMARK_TARGET",
        "CONNSECMARK": "secmark.CONNSECMARK",
        "CT": "ct.CT",
        "DNAT": "nat.DNAT",
        "DNPT": "npt.DNPT",
        "DROP": "verdict.DROP",
        "DSCP": "tos.DSCP_TARGET",
        "ECN": "ecn.ECN_TARGET",
        "HL": "ttl.HL_TARGET",
        "HMARK": "hmark.HMARK",
        "IDLETIMER": "external.EXTERNAL",
        "LED": "external.EXTERNAL",
        "LOG": "log.LOG",
        "MARK": "mark.MARK_TARGET",
        "MASQUERADE": "nat.MASQUERADE",
        "NETMAP": "nat.NETMAP",
        "NFLOG": "log.NFLOG",
        "NFQUEUE": "nfqueue.NFQUEUE",
        "NOTRACK": "ct.NOTRACK",
        "QUEUE": "nfqueue.QUEUE",
        "RATEEST": "external.EXTERNAL",
        "REDIRECT": "nat.REDIRECT",
        "REJECT": "verdict.REJECT",
        "RETURN": "verdict.RETURN",
        "SECMARK": "secmark.SECMARK",
        "SET": "ipset.SET_TARGET",
        "SNAT": "nat.SNAT",
        "SNPT": "npt.SNPT",
        "SYNPROXY": "synproxy.SYNPROXY",
        "TCPMSS": "tcpmss.TCPMSS_TARGET",
        "TCPOPTSTRIP": "tcpoptstrip.TCPOPTSTRIP",
        "TEE": "tee.TEE",
        "TOS": "tos.TOS_TARGET",
        "TPROXY": "tproxy.TPROXY",
        "TRACE": "sideeffects.SIDE_EFFECTS",
        "TTL": "ttl.TTL_TARGET",
    },
)
"""Every modelled target, by its name in ``-j``."""

UNMODELLED_MATCHES: Final = MappingProxyType({match.name: match for match in unmodelled.MATCHES})
"""Every other match of iptables; a rule with such a match is kept as spelled."""

UNMODELLED_TARGETS: Final = MappingProxyType({target.name: target for target in unmodelled.TARGETS})
"""Every other target of iptables; a rule with it is kept as spelled, and no chain can have its name."""
