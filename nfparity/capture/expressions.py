"""The expressions of nftables that the node's kernel accepts, tried in transactions that leave nothing.

A list of modules shows what could be loaded. A transaction shows what the kernel takes, also where the list
cannot be read or a module cannot be loaded. The transactions run in a network namespace of their own, which
ends with the program. Where that is not permitted, as in most containers, they run as ``nft --check``, which
the kernel rolls back; this is only done for expressions without an effect before the commit.

An expression is tried only if the kernel needs no further module for it, because it would load the module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from nfparity.capture.modules import read_available
from nfparity.capture.tools import Tool, Tools

__all__ = ["read_expressions"]

_FILTER = "type filter hook input priority 0;"
_LACKING = ("No such file or directory", "Operation not supported", "Protocol not supported")
"""The kernel's answers where it lacks an expression, a chain type, or a part of them."""


class _Probe(NamedTuple):
    """A rule, and the modules that it needs. The last one is missing if the kernel refuses the rule.

    ``effect``: the kernel already registers hooks when it reads the rule, as ``nf_ct_netns_get`` does.
    """

    modules: tuple[str, ...]
    rule: str
    chain: str = _FILTER
    family: str = "ip"
    effect: bool = False
    also: tuple[str, ...] = ()

    def text(self, number: int, *, check: bool) -> str:
        """Return a table for ``nft -f``. For a check the chain has no hook."""
        more = ""
        if "flow" in self.rule:
            more = "flowtable f { hook ingress priority 0; devices = { lo }; }\n"
        chain = "" if check else self.chain
        return (
            f"table {self.family} nfparity-probe-{number} {{\n{more}chain c {{ {chain}\n{self.rule}\n}}\n}}\n"
        )


_NAT = ("nft_chain_nat",)
_TO = "type nat hook prerouting priority -100;"
_FROM = "type nat hook postrouting priority 100;"
_EARLY = "type filter hook prerouting priority -150;"
_FORWARD = "type filter hook forward priority 0;"

_PROBES = (
    _Probe(("nf_tables",), "meta l4proto tcp counter"),
    _Probe(("nft_chain_nat",), "counter", _TO, effect=True),
    _Probe(("nft_ct",), "ct state established", effect=True),
    _Probe(("nft_connlimit",), "ct count over 1 drop", effect=True, also=("nft_ct",)),
    _Probe(("nft_nat",), "dnat to 192.0.2.1", _TO, effect=True, also=_NAT),
    _Probe(("nft_masq",), "masquerade", _FROM, effect=True, also=_NAT),
    _Probe(("nft_redir",), "redirect", _TO, effect=True, also=_NAT),
    _Probe(("nft_numgen",), "numgen random mod 2 0"),
    _Probe(("nft_hash",), "jhash ip saddr mod 2 0"),
    _Probe(("nft_limit",), "limit rate 1/second"),
    _Probe(("nft_quota",), "quota 1 mbytes"),
    _Probe(("nft_log",), "log", also=("nf_log_syslog",)),
    _Probe(("nft_queue",), "queue num 0"),
    _Probe(("nft_socket",), "socket transparent 1", _EARLY),
    _Probe(("nft_tproxy",), "meta l4proto tcp tproxy to :1", _EARLY, effect=True),
    _Probe(("nft_synproxy",), "meta l4proto tcp synproxy mss 1460 wscale 7", effect=True),
    _Probe(("nft_osf",), 'osf name "Linux"'),
    _Probe(("nft_xfrm",), "ipsec in reqid 1"),
    _Probe(("nft_flow_offload",), "flow add @f", _FORWARD, effect=True, also=("nf_flow_table_ipv4",)),
    _Probe(("nft_fib", "nft_fib_ipv4"), "fib daddr type local"),
    _Probe(("nft_fib", "nft_fib_ipv6"), "fib daddr type local", family="ip6"),
    _Probe(("nft_fib_inet",), "fib daddr type local", family="inet"),
    _Probe(("nft_reject", "nft_reject_ipv4"), "reject"),
    _Probe(("nft_reject", "nft_reject_ipv6"), "reject", family="ip6"),
    _Probe(("nft_reject_inet",), "reject", family="inet"),
    _Probe(("nft_dup_ipv4",), "dup to 192.0.2.1"),
    _Probe(("nft_dup_ipv6",), "dup to 2001:db8::1", family="ip6"),
)


def read_expressions(tools: Tools, release: str, *, proc: Path, lib: Path) -> dict[str, Any] | None:
    """Return the modules whose expressions the kernel accepts, refuses with a message, or was not asked.

    Returns None without nft.
    """
    nft = tools.find("nft")
    if nft is None:
        return None
    available = read_available(release, proc=proc, lib=lib)
    run = _Transactions(tools, nft)
    accepted: set[str] = set()
    refused: dict[str, str] = {}
    tried = [probe for probe in _PROBES if _is_safe(probe, available, alone=run.alone)]
    if tried and tried[0].modules == ("nf_tables",):
        everything = run.message(tried)
        for probe in tried:
            message = everything and run.message([probe])
            if not message:
                accepted.update(probe.modules)
            elif message.endswith(_LACKING):
                refused[probe.modules[-1]] = message.rpartition("Error: ")[2]
    every = {module for probe in _PROBES for module in probe.modules}
    return {
        "own namespace": run.alone,
        "accepted": sorted(accepted),
        "refused": {module: refused[module] for module in sorted(refused.keys() - accepted)},
        "not tried": sorted(every - accepted - refused.keys()),
    }


def _is_safe(probe: _Probe, available: frozenset[str] | None, *, alone: bool) -> bool:
    """Return whether a probe changes nothing; ``available`` is None where no module can be loaded."""
    if probe.effect and not alone:
        return False
    return available is None or available.issuperset(("nf_tables", *probe.modules, *probe.also))


class _Transactions:
    """Transactions in a network namespace of their own (``alone``), or else as checks."""

    def __init__(self, tools: Tools, nft: Tool) -> None:
        self._tools = tools
        unshare = tools.find("unshare")
        self.alone = unshare is not None and tools.message(unshare, "-n", nft.name, "--version") is None
        self._words = (unshare, "-n", nft.name) if unshare is not None and self.alone else (nft, "--check")

    def message(self, probes: list[_Probe]) -> str | None:
        """Return what nft says about a transaction of these probes; None if the kernel accepts it."""
        texts = (probe.text(number, check=not self.alone) for number, probe in enumerate(probes))
        tool, *arguments = self._words
        return self._tools.message(tool, *arguments, "-f", "-", text="".join(texts))
