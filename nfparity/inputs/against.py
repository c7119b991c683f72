"""A given nftables ruleset as a backend, for ``nfparity diff --against``.

A file contains only the ruleset; ``--with-iptables`` names iptables rules that are loaded with it. A snapshot
contains all rules of a node. The tables of iptables-nft are left out of its listing, because nft does
not list them in a form that can be loaded; iptables-nft loads them instead. The rules of iptables-legacy are
loaded, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from backends.model.contract import Backend
from backends.model.variant import variant_of
from harness.files.userfiles import STDIN_NAME, read_bytes, read_text
from nfparity.snapshot import Snapshot, Variant, is_snapshot, load_snapshot
from nfparity.snapshot.snapshot import holds_rules
from translate.errors import InputError
from translate.ir import Family, Rules, TableName

if TYPE_CHECKING:
    from backends.replay.loader import Loader

__all__ = ["given_backend"]

_COMMANDS = {Variant.LEGACY: "iptables-legacy", Variant.NFT: "iptables-nft"}


def given_backend(path: str, beside: str | None = None) -> Backend:
    """Return the backend that runs packets through the ruleset in a file (``-``: standard input).

    ``beside`` is a file with iptables rules that are loaded before it. The name of the backend is that of the
    file. Raises InputError for unreadable files, and ParseError for rules that cannot be loaded unchanged.
    """
    from backends.given_nftables.backend import GivenNftBackend

    if path != "-" and is_snapshot(path):
        if beside is not None:
            raise InputError(
                f"{path}: a snapshot has the iptables rules of its node; --with-iptables is for files"
            )
        return _of_snapshot(load_snapshot(path))
    name = STDIN_NAME if path == "-" else path
    if beside is None:
        return GivenNftBackend(name, read_text(path))
    return GivenNftBackend(name, read_text(path), beside=_rules_in(beside))


def _rules_in(path: str) -> Callable[[Family], Loader | None]:
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

    return beside


def _of_snapshot(snapshot: Snapshot) -> Backend:
    from backends.given_nftables.backend import GivenNftBackend

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

    return GivenNftBackend(snapshot.name, snapshot.nft, without=without, beside=beside)


def _loader(rules: list[tuple[Variant, Rules]]) -> Loader | None:
    """Return the loader of the rules of one variant, or of both."""
    from backends.combined.backend import BesideLoader
    from backends.iptables.backend import loader_of

    loader: Loader | None = None
    for variant, ruleset in rules:
        added = loader_of(_COMMANDS[variant], ruleset.whole())
        loader = added if loader is None else BesideLoader(loader, added)
    return loader
