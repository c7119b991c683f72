"""The kernel modules that rules need today, that their translation needs, and that kube-proxy needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from backends.model.variant import Variant
from nfparity.requires.modules import helper_module, match_module, set_module, table_modules, target_module
from nfparity.requires.nftmodules import nft_modules
from translate.dataclass import dataclass
from translate.ir import Family, Origin, Rule, Ruleset

__all__ = ["Need", "Purpose", "kube_proxy_needs", "rules_needs", "translation_needs"]

_KUBE_PROXY: Final = (
    "nf_tables",
    "nft_chain_nat",
    "nft_ct",
    "nft_fib",
    "nft_fib_ipv4",
    "nft_fib_ipv6",
    "nft_masq",
    "nft_nat",
    "nft_numgen",
    "nft_reject",
    "nft_reject_ipv4",
    "nft_reject_ipv6",
)
"""The modules of kube-proxy's nftables rules; a test compares them with those of two of its layouts."""


class Purpose(StrEnum):
    """The rules that need a module."""

    RULES = "the rules today"
    TRANSLATION = "their translation to nftables"
    KUBE_PROXY = "kube-proxy's nftables mode"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """A kernel module, and the feature and the rules that need it.

    ``feature`` is for example ``-m recent`` or ``-j LOG``. ``rules`` are the places of the rules with it, in
    their order; they are empty if single rules do not need the module.
    """

    module: str
    purpose: Purpose
    feature: str
    rules: tuple[Origin, ...] = ()


def rules_needs(ruleset: Ruleset, variant: Variant) -> tuple[Need, ...]:
    """Return the modules that x_tables, or nf_tables for iptables-nft, needs for the rules."""
    origins: dict[tuple[str, str], list[Origin]] = {}
    for table in ruleset.tables:
        for module in table_modules(table.name, ruleset.family, variant):
            origins.setdefault((module, f"table {table.name.value}"), [])
        for chain in table.chains:
            for rule in chain.rules:
                for module, feature in _of_rule(rule, ruleset.family):
                    origins.setdefault((module, feature), []).append(rule.origin)
    used = {test.name for _, test in ruleset.set_uses()}
    for ipset in ruleset.sets:
        if ipset.name in used:
            kind = ipset.type.value
            origins.setdefault((set_module(kind), f"ipset type {kind}"), []).append(ipset.origin)
    return tuple(
        Need(module=module, purpose=Purpose.RULES, feature=feature, rules=tuple(places))
        for (module, feature), places in origins.items()
    )


def translation_needs(text: str) -> tuple[Need, ...]:
    """Return the modules that nftables text needs."""
    return _plain(sorted(nft_modules(text)), Purpose.TRANSLATION)


def kube_proxy_needs(families: Iterable[Family]) -> tuple[Need, ...]:
    """Return the modules that kube-proxy's nftables mode needs."""
    unused = {f"ipv{family.version}" for family in Family} - {f"ipv{family.version}" for family in families}
    return _plain(
        (module for module in _KUBE_PROXY if module.rpartition("_")[2] not in unused), Purpose.KUBE_PROXY
    )


def _plain(modules: Iterable[str], purpose: Purpose) -> tuple[Need, ...]:
    return tuple(Need(module=module, purpose=purpose, feature="") for module in modules)


def _of_rule(rule: Rule, family: Family) -> Iterator[tuple[str, str]]:
    """Yield the modules of a rule, with the match or target that needs each."""
    for match in rule.matches:
        yield match_module(match.name, family), f"-m {match.name}"
    target = rule.target
    if target is None or rule.callee is not None:
        return
    module = target_module(target.name, family)
    if module is not None:
        yield module, f"-j {target.name}"
    for option in target.options:
        if target.name == "CT" and option.name == "--helper":
            yield helper_module(option.arguments[0]), f"-j CT --helper {option.arguments[0]}"
