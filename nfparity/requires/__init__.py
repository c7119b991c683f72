"""``nfparity requires``: the kernel modules that rules and translations need, and machines that lack them.

``modules`` names the module of each match, target, table and set type of iptables; ``nftmodules`` finds those
of nftables text; ``needs`` collects both for a ruleset. ``platforms`` reads ``platforms.toml``, the modules
that named platforms lack, lists of a machine's own modules, and what a snapshot's kernel accepted.
Imported by ``nfparity.assess``, ``nfparity.cli`` and ``nfparity.report``.
"""

from nfparity.requires.needs import Need, Purpose, kube_proxy_needs, rules_needs, translation_needs
from nfparity.requires.platforms import (
    Modules,
    Presence,
    listed_modules,
    platform_modules,
    platform_names,
    snapshot_modules,
)

__all__ = [
    "Modules",
    "Need",
    "Presence",
    "Purpose",
    "kube_proxy_needs",
    "listed_modules",
    "platform_modules",
    "platform_names",
    "rules_needs",
    "snapshot_modules",
    "translation_needs",
]
