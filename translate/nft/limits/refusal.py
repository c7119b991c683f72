"""Refusals of the nftables translation: raised for a test or action, collected rule by rule."""

from __future__ import annotations

from typing import Final

from translate.refusals import REFUSED_BY_ALL, CannotTranslate

__all__ = ["BACKEND", "REFUSED", "CannotSay"]

BACKEND: Final = "nftables"

REFUSED: Final = {
    **REFUSED_BY_ALL,
    "ah6": "`-m ah` over IPv6 in a rule that also tests a protocol, ports or a transport header",
    "ah6-protocol": "`-p ah` over IPv6, which never matches in ip6tables-legacy but does in ip6tables-nft",
    "any-of-with-map": "a lookup after a test that takes several rules",
    "cluster6": "`-m cluster` over IPv6",
    "cluster-hook": "`-m cluster` in INPUT, or in a chain that both PREROUTING and another hook call",
    "ct-expire": "`-m conntrack --ctexpire` with a limit above 49 days",
    "bpf": "`-m bpf`: nf_tables runs no BPF program",
    "cgroup-hook": "`-m cgroup` in POSTROUTING with `--path`, or in a rule that TCP may match",
    "cgroup-path": "`-m cgroup --path` with a path that nft cannot spell",
    "cluster-order": "`-m cluster` after a test that counts, draws or keeps a state",
    "cluster-single": "`-m cluster` with a cluster of one node, or for none of its nodes",
    "connlabel-negated": "`-m connlabel ! --label` with `--set`",
    "connlimit-zones": "`-m connlimit` where other rules have `-j CT --zone`",
    "ct-template": "`-j CT` with `--timeout`, `--ctevents` or `--expevents`, or with `--helper` where a"
    " test of raw may have another result after conntrack",
    "ct-zone-mark": "`-j CT --zone mark`",
    "dccp-options": "`-m dccp --dccp-option`: `dccp option` of nft, which Debian 12 does not have, takes"
    " options 2 to 31 for single bytes, xt_dccp for longer ones",
    "eui64": "`-m eui64`",
    "external": "`-j IDLETIMER`, `LED` and `RATEEST`",
    "flowtable": "with `--flowtable`: a rule or policy that does more than accept later packets",
    "flowtable-invalid": "with `--flowtable`: a rule or policy that does not treat INVALID packets as a"
    " flowtable does, and NAT; `--flowtable-unchecked` accepts both",
    "hashlimit-expire": "`-m hashlimit --hashlimit-htable-expire` with a part of a second",
    "hashlimit-ports": "`-m hashlimit` by ports in a rule that does not test for a protocol with ports; in"
    " IPv6, if no rule uses conntrack, also in a rule that does not test a port, because later fragments"
    " reach it",
    "hashlimit-shared": "`-m hashlimit` in two rules with one name and different limits",
    "hashlimit-window": "`-m hashlimit --hashlimit-rate-match`: nf_tables has token buckets, and no rate"
    " averaged over an interval",
    "header-options": "`-m dst --dst-opts`: nft reads the length of the header, not the options in it, whose"
    " place depends on other headers; `-m hbh --hbh-opts` with an option without its length before another",
    "helper-name": "`-m helper` with a name that nft cannot spell",
    "hmark": "`-j HMARK`: the hash of nft has its fields in a fixed order, that of HMARK the lower address"
    " first",
    "interface-name": "an interface whose name nft cannot spell",
    "ipset-protocol": "`-m set` of a set with elements of a protocol without ports",
    "ipv6-fragment": "`-f` over IPv6",
    "ipsec-states": "`-m policy` with `--proto`, `--mode`, `--tunnel-src` or `--tunnel-dst`, or with both"
    " `--reqid` and `--spi` without `--strict`",
    "jump-depth": "chains that cannot be inlined, more than 15 levels below a built-in one",
    "log-prefix": "a `--log-prefix` or `--nflog-prefix` with a double quote or a control character",
    "nat-port-shift": "`--to-destination A:1000-2000/3000` (a port shift), unless the rule tests the"
    " destination port and gives each port a different new one",
    "netmap-sides": "`-j NETMAP` in a chain reached from hooks where it maps the source and from hooks where"
    " it maps the destination",
    "notrack-answers": "`NOTRACK` in OUTPUT where another rule tests the state of the node's own ICMP"
    " errors or RSTs",
    "npt": "`-j SNPT` and `-j DNPT`",
    "queue-nat": "`-j NFQUEUE` in nat",
    "queue-route": "`-j NFQUEUE` in OUTPUT of mangle",
    "owner-hook": "`-m owner --socket-exists` in POSTROUTING, in a rule that TCP, SCTP or DCCP may match",
    "recent-hitcount": "`-m recent --hitcount` above 1 with a negated check, and above 32",
    "sctp-chunks": "`-m sctp --chunk-types only`",
    "secmark-label": "`-j SECMARK` with a label that nft cannot quote",
    "set-forceadd": "`-j SET` of a set with `forceadd`",
    "set-intervals": "`-j SET` of a set with networks, or of a `bitmap:port`",
    "set-ports": "`-j SET --add-set` of a set with ports in a rule that does not test for TCP, UDP, SCTP or"
    " UDPLite",
    "set-timeouts": "`-j SET --exist` if some elements of the set have a timeout and others have none",
    "synproxy-ecn": "`-j SYNPROXY --ecn`",
    "synproxy6": "`-j SYNPROXY` over IPv6",
    "template-fields": "in a hook of raw that also has `-j CT` with another option than `--notrack`:"
    " `-j CONNMARK --restore-mark`, and matches of connections (of `--ctstate` only `SNAT` and `DNAT`)",
    "u32": "`-m u32` and `-m string` beyond byte 255 of a header; `-m u32` at an offset that the packet gives"
    " (except `0>>22&0x3C@` in IPv4 beside a test that excludes later fragments)",
}
"""Descriptions of the refused features, by the name in a :class:`~translate.errors.Refusal`."""


class CannotSay(CannotTranslate):
    """A test or action without an exact nftables form."""

    backend = BACKEND
    refused = REFUSED
