"""Rules as inputs of commands: a file in one of several forms, a page with rulesets, or a snapshot.

From a snapshot, the loaded rules of one family are read.
"""

from __future__ import annotations

from harness.corpus.formats.rulefile import AS_FOUND, InputOptions, give_ipsets, insist_on_tables, read_some
from harness.files.userfiles import STDIN_NAME, read_bytes
from nfparity.snapshot.archive import is_snapshot
from translate.errors import InputError
from translate.ir import Rules, Ruleset
from translate.read import read_pieces

__all__ = ["load_large_rules", "load_pieces", "load_rules"]


def load_rules(path: str, options: InputOptions = AS_FOUND) -> Ruleset:
    """Return one ruleset (``-``: standard input). Raises ParseError or InputError."""
    pieces = load_pieces(path, options)
    if len(pieces) > 1:
        places = ", ".join(f"{n}: from line {_line(piece)}" for n, piece in enumerate(pieces, 1))
        raise InputError(f"{path}: {len(pieces)} rulesets on this page ({places}); choose one with --ruleset")
    return pieces[0]


def load_large_rules(path: str, options: InputOptions = AS_FOUND) -> Rules:
    """Return one ruleset for translation: like :func:`load_rules`, but condensed if it is large."""
    if is_snapshot(path) and options.ipsets is None:
        return _of_snapshot(path, options)
    others = (options.ipsets, options.variant, options.ruleset_number)
    if is_snapshot(path) or options.extract or others != (None, None, None):
        return load_rules(path, options)
    from translate.condense import read_large

    name = STDIN_NAME if path == "-" else path
    rules = read_large(
        read_bytes(path), name=name, family=options.family, form=options.form, table=options.table
    )
    insist_on_tables(rules.sample, name)
    return give_ipsets(rules.whole(), path, options) if any(rules.sample.set_uses()) else rules


def load_pieces(path: str, options: InputOptions = AS_FOUND) -> tuple[Ruleset, ...]:
    """Return every ruleset of an input: one, or several if the input is a page with rulesets."""
    if is_snapshot(path):
        ruleset = _of_snapshot(path, options).whole()
        return (ruleset if options.ipsets is None else give_ipsets(ruleset, path, options),)
    if options.variant is not None:
        raise InputError(f"{path}: --variant needs a snapshot: a folder or a .tar.gz")
    if path == "-" and options.ipsets == "-":
        raise InputError("only one of rules and ipsets can be standard input")
    name = STDIN_NAME if path == "-" else path
    data = read_bytes(path)
    family, table = options.family, options.table
    if not options.extract:
        if options.ruleset_number is not None:
            raise InputError("--ruleset needs --extract")
        return (give_ipsets(read_some(data, name=name, options=options), path, options),)
    if options.form is not None:
        raise InputError("--extract recognises the form of each ruleset; --input cannot be given with it")
    pieces = read_pieces(data, name=name, family=family, table=table)
    pieces = tuple(give_ipsets(piece, path, options) for piece in pieces)
    if options.ruleset_number is None:
        return pieces
    if not 1 <= options.ruleset_number <= len(pieces):
        raise InputError(
            f"{path}: no ruleset {options.ruleset_number} on this page; rulesets are 1 to {len(pieces)}"
        )
    return (pieces[options.ruleset_number - 1],)


def _of_snapshot(path: str, options: InputOptions) -> Rules:
    from nfparity.snapshot import load_snapshot

    if options.extract or (options.form, options.table, options.ruleset_number) != (None, None, None):
        raise InputError(
            f"{path}: --input, --table, --extract and --ruleset are for files of rules, not snapshots"
        )
    snapshot = load_snapshot(path)
    rules = snapshot.loaded_rules(options.family or snapshot.main_family, options.variant)
    others = " and ".join(
        f"IPv{f.version} rules (--family {f})" for f in snapshot.families if f is not rules.family
    )
    if options.family is not None or not others:
        return rules
    return rules.noted(
        f"these are the IPv{rules.family.version} rules of the snapshot, which has {others}, too"
    )


def _line(ruleset: Ruleset) -> int:
    return min(table.origin.line for table in ruleset.tables)
