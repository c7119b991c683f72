"""Matches and targets: one file per family of extensions, and the registries of their names.

An extension is syntax: it declares its options and turns them into tests or an action
(:mod:`translate.read.extensions.declaration`). Only the rule reader, and the tables that report coverage,
import from here. Names that are in no registry are refused, never skipped.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from translate.read.extensions import unmodelled
from translate.read.extensions.addrtype import ADDRTYPE
from translate.read.extensions.cgroup import CGROUP
from translate.read.extensions.cluster import CLUSTER
from translate.read.extensions.comment import COMMENT
from translate.read.extensions.connbytes import CONNBYTES
from translate.read.extensions.connlabel import CONNLABEL
from translate.read.extensions.connlimit import CONNLIMIT
from translate.read.extensions.connmark import CONNMARK_MATCH, CONNMARK_TARGET
from translate.read.extensions.conntrack import CONNTRACK, STATE
from translate.read.extensions.cpu import CPU
from translate.read.extensions.ct import CT, NOTRACK
from translate.read.extensions.devgroup import DEVGROUP
from translate.read.extensions.ecn import ECN_MATCH, ECN_TARGET
from translate.read.extensions.eui64 import EUI64
from translate.read.extensions.extensionheaders import DST, FRAG, HBH, IPV6HEADER
from translate.read.extensions.external import EXTERNAL
from translate.read.extensions.hashlimit import HASHLIMIT
from translate.read.extensions.helper import HELPER
from translate.read.extensions.icmp import ICMP, ICMP6
from translate.read.extensions.iprange import IPRANGE
from translate.read.extensions.ipsec import AH, ESP, IPCOMP
from translate.read.extensions.ipset import SET, SET_TARGET
from translate.read.extensions.length import LENGTH
from translate.read.extensions.limit import LIMIT
from translate.read.extensions.link import MAC, PKTTYPE
from translate.read.extensions.log import LOG, NFLOG
from translate.read.extensions.mark import MARK_MATCH, MARK_TARGET
from translate.read.extensions.mh import MH
from translate.read.extensions.multiport import MULTIPORT
from translate.read.extensions.nat import DNAT, MASQUERADE, NETMAP, REDIRECT, SNAT
from translate.read.extensions.nfacct import NFACCT
from translate.read.extensions.nfqueue import NFQUEUE, QUEUE
from translate.read.extensions.npt import DNPT, SNPT
from translate.read.extensions.owner import OWNER
from translate.read.extensions.physdev import PHYSDEV
from translate.read.extensions.policy import POLICY
from translate.read.extensions.quota import QUOTA
from translate.read.extensions.realm import REALM
from translate.read.extensions.recent import RECENT
from translate.read.extensions.rpfilter import RPFILTER
from translate.read.extensions.rt import RT
from translate.read.extensions.secmark import CONNSECMARK, SECMARK
from translate.read.extensions.sideeffects import SIDE_EFFECTS
from translate.read.extensions.socket import SOCKET
from translate.read.extensions.srh import SRH
from translate.read.extensions.statistic import STATISTIC
from translate.read.extensions.string import STRING
from translate.read.extensions.synproxy import SYNPROXY
from translate.read.extensions.tcpmss import TCPMSS_MATCH, TCPMSS_TARGET
from translate.read.extensions.tcpoptstrip import TCPOPTSTRIP
from translate.read.extensions.tee import TEE
from translate.read.extensions.time import TIME
from translate.read.extensions.tos import DSCP_MATCH, DSCP_TARGET, TOS_MATCH, TOS_TARGET
from translate.read.extensions.tproxy import TPROXY
from translate.read.extensions.transport import DCCP, SCTP, TCP, UDP
from translate.read.extensions.ttl import HL_MATCH, HL_TARGET, TTL_MATCH, TTL_TARGET
from translate.read.extensions.u32 import U32
from translate.read.extensions.verdict import ACCEPT, DROP, REJECT, RETURN

__all__ = ["MATCHES", "TARGETS", "UNMODELLED_MATCHES", "UNMODELLED_TARGETS"]

MATCHES: Final = MappingProxyType(
    {
        match.name: match
        for match in (
            ADDRTYPE,
            AH,
            CGROUP,
            CLUSTER,
            COMMENT,
            CONNBYTES,
            CONNLABEL,
            CONNLIMIT,
            CONNMARK_MATCH,
            CONNTRACK,
            CPU,
            DCCP,
            DEVGROUP,
            DSCP_MATCH,
            DST,
            ECN_MATCH,
            ESP,
            EUI64,
            FRAG,
            HASHLIMIT,
            HBH,
            HELPER,
            HL_MATCH,
            ICMP,
            ICMP6,
            IPCOMP,
            IPRANGE,
            IPV6HEADER,
            LENGTH,
            LIMIT,
            MAC,
            MARK_MATCH,
            MH,
            MULTIPORT,
            NFACCT,
            OWNER,
            PHYSDEV,
            PKTTYPE,
            POLICY,
            QUOTA,
            REALM,
            RECENT,
            RPFILTER,
            RT,
            SCTP,
            SET,
            SOCKET,
            SRH,
            STATE,
            STATISTIC,
            STRING,
            TCP,
            TCPMSS_MATCH,
            TIME,
            TOS_MATCH,
            TTL_MATCH,
            U32,
            UDP,
        )
    }
)
"""Every modelled match, by its name in ``-m``."""

TARGETS: Final = MappingProxyType(
    {
        target.name: target
        for target in (
            ACCEPT,
            CONNMARK_TARGET,
            CT,
            DNAT,
            DNPT,
            DROP,
            DSCP_TARGET,
            ECN_TARGET,
            HL_TARGET,
            LOG,
            MARK_TARGET,
            MASQUERADE,
            NETMAP,
            NFLOG,
            NFQUEUE,
            NOTRACK,
            QUEUE,
            REDIRECT,
            REJECT,
            RETURN,
            SET_TARGET,
            SNAT,
            SNPT,
            SYNPROXY,
            TCPMSS_TARGET,
            TCPOPTSTRIP,
            TEE,
            TOS_TARGET,
            TPROXY,
            TTL_TARGET,
            CONNSECMARK,
            SECMARK,
            *EXTERNAL,
            *SIDE_EFFECTS,
        )
    }
)
"""Every modelled target, by its name in ``-j``."""

UNMODELLED_MATCHES: Final = MappingProxyType({match.name: match for match in unmodelled.MATCHES})
"""Every other match of iptables; a rule with such a match is kept as spelled."""

UNMODELLED_TARGETS: Final = MappingProxyType({target.name: target for target in unmodelled.TARGETS})
"""Every other target of iptables; a rule with it is kept as spelled, and no chain can have its name."""
