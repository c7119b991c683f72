"""A given nftables ruleset in the place of a backend: what ``nfparity diff --against`` compares with.

A file is the ruleset alone, and ``--beside`` names iptables rules that are on the node with it. A snapshot
has all that was on a node: the tables of iptables-nft's among those of its listing are left out, because nft
does not list them as they are, and loaded by iptables-nft instead; what iptables-legacy held is loaded, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from backends.model.contract import Backend
from backends.model.stack import stack_of
from harness.files.userfiles import STDIN_NAME, read_bytes, read_text
from nfparity.snapshot import Snapshot, Stack, is_snapshot, load_snapshot
from nfparity.snapshot.snapshot import holds_rules
from translate.errors import InputError
from translate.ir import Family, Ruleset, TableName

if TYPE_CHECKING:
    from backends.replay.loader import Loader

__all__ = ["given_backend"]

_COMMANDS = {Stack.LEGACY: "iptables-legacy", Stack.NFT: "iptables-nft"}


def given_backend(path: str, beside: str | None = None) -> Backend:
    """Return the backend that runs packets through the ruleset in a file (``-``: standard input).

    ``beside`` is a file with iptables rules that are loaded before it. The backend is called as the file
    is. Raises InputError when something cannot be read, ParseError when it cannot be loaded as it is.
    """
    from backends.given_nftables.backend import GivenNftBackend

    if path != "-" and is_snapshot(path):
        if beside is not None:
            raise InputError(f"{path}: a snapshot has the iptables rules of its node; --beside is for files")
        return _of_snapshot(load_snapshot(path))
    name = STDIN_NAME if path == "-" else path
    if beside is None:
        return GivenNftBackend(name, read_text(path))
    return GivenNftBackend(name, read_text(path), beside=_rules_in(beside))


def _rules_in(path: str) -> Callable[[Family], Loader | None]:
    from nfparity.inputs.rules import load_rules

    if path == "-" or is_snapshot(path):
        raise InputError(f"--beside takes a file of rules, and {path!r} is none")
    ruleset = load_rules(path)
    stack = stack_of(read_bytes(path))

    def beside(family: Family) -> Loader | None:
        if ruleset.family is not family:
            message = f"{path}: these rules are for {ruleset.family.value}, and the others for {family.value}"
            raise InputError(message)
        return _loader([(stack, ruleset)])

    return beside


def _of_snapshot(snapshot: Snapshot) -> Backend:
    from backends.given_nftables.backend import GivenNftBackend

    if snapshot.nft is None:
        raise InputError(f"{snapshot.name}: no nftables ruleset in this snapshot (it would be nft.json)")
    families = [family for stack, family in snapshot.rules if stack is Stack.NFT]
    without = {(family.value, table.value) for family in families for table in TableName}

    def beside(family: Family) -> Loader | None:
        both = [
            (stack, snapshot.rules[stack, family]) for stack in Stack if (stack, family) in snapshot.rules
        ]
        return _loader([(stack, rules) for stack, rules in both if holds_rules(rules)])

    return GivenNftBackend(snapshot.name, snapshot.nft, without=without, beside=beside)


def _loader(rules: list[tuple[Stack, Ruleset]]) -> Loader | None:
    """What loads the rules of one stack, or of both."""
    from backends.combined.backend import BesideLoader
    from backends.iptables.backend import loader_of

    loader: Loader | None = None
    for stack, ruleset in rules:
        one = loader_of(_COMMANDS[stack], ruleset)
        loader = one if loader is None else BesideLoader(loader, one)
    return loader
