"""Batches as inputs of commands.

Rules with a corpus file are one batch; a folder of cases is one batch for each pair of rules and node.
"""

from __future__ import annotations

import sys
from pathlib import Path

from backends.model.flow import Flow
from backends.model.node import Node, node_from_json
from harness.corpus.cases import is_case_folder, read_cases
from harness.corpus.formats.jsonlines import read_flows
from harness.corpus.formats.rulefile import AS_FOUND, InputOptions
from harness.diff.batch import Batch
from harness.files.userfiles import STDIN_NAME, read_bytes, read_text
from nfparity.inputs.rules import load_large_rules
from nfparity.snapshot.archive import is_snapshot
from translate.dataclass import replace
from translate.errors import InputError
from translate.ir import Family, Rules

__all__ = ["load_batches", "load_capture", "load_flows", "load_node"]

_CAPTURES = (".pcap", ".pcapng", ".cap")


def load_node(path: str | None, ruleset: Rules, *, rules: str | None = None) -> Node:
    """Return the node of a file or a snapshot; without ``path``, the node of ``rules`` or an inferred one.

    ``rules`` is the path of the rules, which may be a snapshot.
    """
    snapshot = path if path is not None else rules
    if snapshot is not None and is_snapshot(snapshot):
        from nfparity.snapshot import load_snapshot

        return load_snapshot(snapshot).node
    if path is not None:
        return node_from_json(read_text(path), name=STDIN_NAME if path == "-" else path)
    from nfparity.snapshot.inference import infer_node

    return infer_node(ruleset.whole())


def load_flows(path: str, node: Node, *, family: Family | None = None) -> tuple[Flow, ...]:
    """Return flows from JSON Lines or a capture, depending on the file's name (``-``: JSON Lines)."""
    if path.lower().endswith(_CAPTURES):
        return load_capture(path, node, family=family)
    return read_flows(read_bytes(path), name=STDIN_NAME if path == "-" else path, node=node)


def load_capture(path: str, node: Node, *, family: Family | None = None) -> tuple[Flow, ...]:
    """Return the flows of a capture, of ``family`` if given. Print the frames left out, with the reasons."""
    from harness.corpus.formats.pcap import import_capture

    imported = import_capture(Path(path), node=node, family=family)
    for line in imported.left_out_lines():
        print(f"nfparity: {path}: left out {line}", file=sys.stderr)
    return imported.flows


def load_batches(
    *,
    rules: str | None,
    corpus: str,
    node: str | None,
    options: InputOptions = AS_FOUND,
) -> tuple[Batch, ...]:
    """Read the inputs of a command.

    ``corpus`` is a flows file, a capture, or a folder of cases. With a folder, ``rules`` and ``node`` may be
    left out, because each case names its own; if given, they replace those of all cases. ``options`` are for
    reading ``rules``.
    """
    if not is_case_folder(Path(corpus)):
        if Path(corpus).is_dir():
            raise InputError(f"{corpus}: this folder contains no case (case.toml)")
        if rules is None:
            raise InputError("no rules given; only a folder of cases contains its own")
        if [rules, corpus, node, options.ipsets].count("-") > 1:
            raise InputError("only one of rules, ipsets, corpus and node can be standard input")
        read = load_large_rules(rules, options)
        where = load_node(node, read, rules=rules)
        flows = load_flows(corpus, where, family=read.sample.family)
        batch = Batch(rules_path=rules, rules=read, node=where, flows=flows, corpus=corpus, node_path=node)
        return (batch,)
    common = None if rules is None else load_large_rules(rules, options)
    cases = read_cases(Path(corpus))
    many = len(cases) > 1
    groups: dict[tuple[str, str], Batch] = {}
    for case in cases:
        ruleset: Rules = case.ruleset if common is None else common
        where = case.node if node is None else load_node(node, ruleset)
        flows = tuple(replace(f, id=f"{case.name}/{f.id}") for f in case.flows) if many else case.flows
        rules_path = ruleset.sample.source if rules is None else rules
        node_path = str(case.node_path) if node is None else node
        key = (rules_path, str(Path(node_path).resolve()))
        if key in groups:
            groups[key] = replace(groups[key], flows=groups[key].flows + flows)
        else:
            groups[key] = Batch(
                rules_path=rules_path,
                rules=ruleset,
                node=where,
                flows=flows,
                corpus=corpus,
                node_path=node_path,
            )
    return tuple(groups.values())
