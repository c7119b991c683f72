"""A given nftables ruleset as a backend, for ``nfparity diff --against``.

A file contains only the ruleset; ``--with-iptables`` names iptables rules that are loaded with it. A snapshot
contains all rules of a node. The tables of iptables-nft are left out of its listing, because nft does
not list them in a form that can be loaded; iptables-nft loads them instead. The rules of iptables-legacy are
loaded, too.

At equal hook and priority, chains run in an order that a listing does not show. So the ruleset is tested in
both orders: its chains run first, or those of iptables do.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TYPE_CHECKING

from backends.model.contract import Backend
from backends.model.variant import variant_of
from harness.diff.result import BackendReport
from harness.files.userfiles import STDIN_NAME, read_bytes, read_text
from nfparity.snapshot import Snapshot, Variant, is_snapshot, load_snapshot
from nfparity.snapshot.snapshot import holds_rules
from translate.dataclass import dataclass
from translate.errors import InputError
from translate.ir import Family, Rules, Ruleset, TableName

if TYPE_CHECKING:
    from backends.replay.loader import Loader

__all__ = ["Against", "given_backends"]

_COMMANDS = {Variant.LEGACY: "iptables-legacy", Variant.NFT: "iptables-nft"}


@dataclass(frozen=True, slots=True)
class Against:
    """A ruleset in each order of registration: ``backends`` are one, or two if both orders count.

    ``untested`` is the report of the second order if it is not tested although it counts.
    """

    backends: tuple[Backend, ...]
    untested: tuple[BackendReport, ...] = ()


def given_backends(path: str, beside: str | None = None) -> Against:
    """Return the backends that run packets through the ruleset in a file (``-``: standard input).

    ``beside`` is a file with iptables rules that are loaded with it. The name of the first backend is that of
    the file. Where the ruleset and the iptables rules have chains at the same place, a second backend has the
    other order. Raises InputError for unreadable files, and ParseError for rules that cannot be loaded
    unchanged.
    """
    from backends.given_nftables.backend import GivenNftBackend

    if path != "-" and is_snapshot(path):
        if beside is not None:
            raise InputError(
                f"{path}: a snapshot has the iptables rules of its node; --with-iptables is for files"
            )
        return _of_snapshot(load_snapshot(path))
    name = STDIN_NAME if path == "-" else path
    text = read_text(path)
    if beside is None:
        return Against((GivenNftBackend(name, text),))
    rules, loader = _rules_in(beside)
    return _both_orders(name, text, (rules,), loader)


def _both_orders(
    name: str,
    text: str,
    rules: Iterable[Ruleset],
    beside: Callable[[Family], Loader | None],
    without: Container[tuple[str, str]] = (),
) -> Against:
    from backends.combined.places import shared_places
    from backends.given_nftables.backend import IPTABLES_CHAINS_FIRST, GivenNftBackend

    usual = GivenNftBackend(name, text, without=without, beside=beside)
    if not any(shared_places(usual.listing, ruleset, ruleset.family) for ruleset in rules):
        return Against((usual,))
    if usual.listing.counting:
        # It is loaded again between flows, which registers its chains last.
        reason = f"{usual.listing.counting[0]} counts packets"
        untested = BackendReport(name=f"{name}{IPTABLES_CHAINS_FIRST}", untested=(reason,))
        return Against((usual,), (untested,))
    return Against((usual, GivenNftBackend(name, text, without=without, beside=beside, first=True)))


def _rules_in(path: str) -> tuple[Ruleset, Callable[[Family], Loader | None]]:
    from nfparity.inputs.rules import load_rules

    if path == "-" or is_snapshot(path):
        raise InputError(f"--with-iptables needs a file of rules, but {path!r} is a snapshot")
    ruleset = load_rules(path)
    variant = variant_of(read_bytes(path))

    def beside(family: Family) -> Loader | None:
        if ruleset.family is not family:
            message = f"{path}: these rules are for {ruleset.family.value}, and the others for {family.value}"
            raise InputError(message)
        return _loader([(variant, ruleset)])

    return ruleset, beside


def _of_snapshot(snapshot: Snapshot) -> Against:
    if snapshot.nft is None:
        raise InputError(f"{snapshot.name}: no nftables ruleset in this snapshot (it would be nft.json)")
    families = [family for variant, family in snapshot.rules if variant is Variant.NFT]
    without = {(family.value, table.value) for family in families for table in TableName}

    def beside(family: Family) -> Loader | None:
        both = [
            (variant, snapshot.rules[variant, family])
            for variant in Variant
            if (variant, family) in snapshot.rules
        ]
        return _loader([(variant, rules) for variant, rules in both if holds_rules(rules)])

    rules = [rules.whole() for rules in snapshot.rules.values() if holds_rules(rules)]
    return _both_orders(snapshot.name, snapshot.nft, rules, beside, without)


def _loader(rules: list[tuple[Variant, Rules]]) -> Loader | None:
    """Return the loader of the rules of one variant, or of both."""
    from backends.combined.backend import CombinedLoader
    from backends.iptables.backend import loader_of

    loader: Loader | None = None
    for variant, ruleset in rules:
        added = loader_of(_COMMANDS[variant], ruleset.whole())
        loader = added if loader is None else CombinedLoader(loader, added)
    return loader
