"""Reads a snapshot: a folder, a ``.tar.gz``, or a bare file with rules."""

from __future__ import annotations

from collections.abc import Mapping

from backends.model.node import Address, Interface, Node
from backends.model.variant import variant_of
from nfparity.snapshot.archive import is_snapshot, read_files
from nfparity.snapshot.jsonfile import read_mapping
from nfparity.snapshot.nodefacts import read_node
from nfparity.snapshot.rulefiles import rule_files
from nfparity.snapshot.snapshot import Snapshot
from translate.dataclass import replace
from translate.jsoninput import decode

__all__ = ["load_snapshot"]


def load_snapshot(path: str) -> Snapshot:
    """Return the snapshot at ``path``; without a captured node, one is inferred.

    Raises InputError for unreadable files and ParseError for invalid contents. Errors in rules of a folder or
    an archive are raised when these rules are first used.
    """
    if not is_snapshot(path):
        return _bare(path)
    files = read_files(path)
    meta = read_mapping(files["meta.json"], name=f"{path}/meta.json").data if "meta.json" in files else {}
    rules = rule_files(files, meta, name=path)
    node = read_node(files, name=path)
    made = Snapshot(
        name=path,
        rules=rules,
        node=Node(()) if node is None else node,
        nft=_text(files, "nft.json", path),
        meta=meta,
        objects=_text(files, "objects.json", path),
        ipvs=_text(files, "ipvs-save", path),
    )
    return made if node is not None else replace(made, node=_inferred(made))


def _inferred(snapshot: Snapshot) -> Node:
    """Return a node for the rules of every family, inferred for each with the same names."""
    from nfparity.snapshot.inference import infer_node

    nodes = [infer_node(rules.whole()) for rules in snapshot.rules.values()]
    addresses: dict[str, tuple[Address, ...]] = {}
    for interface in (i for node in nodes for i in node.interfaces):
        before = addresses.get(interface.name, ())
        addresses[interface.name] = tuple(dict.fromkeys((*before, *interface.addresses)))
    return Node(
        tuple(Interface(n, a) for n, a in addresses.items()),
        tuple(dict.fromkeys(r for node in nodes for r in node.routes)),
        {},
        tuple(dict.fromkeys(assumption for node in nodes for assumption in node.assumed)),
    )


def _bare(path: str) -> Snapshot:
    from harness.corpus.formats.rulefile import give_ipsets, read_some
    from harness.files.userfiles import STDIN_NAME, read_bytes
    from nfparity.snapshot.inference import infer_node

    data = read_bytes(path)
    ruleset = give_ipsets(read_some(data, name=STDIN_NAME if path == "-" else path), path)
    variant = variant_of(data)
    return Snapshot(name=path, rules={(variant, ruleset.family): ruleset}, node=infer_node(ruleset))


def _text(files: Mapping[str, bytes], file: str, name: str) -> str | None:
    if file not in files:
        return None
    return decode(files[file], name=f"{name}/{file}")
