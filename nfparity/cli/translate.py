"""``nfparity translate``: iptables rules as nftables rules, as a tc eBPF program, or in the form between."""

from __future__ import annotations

import argparse
import sys
from difflib import get_close_matches
from typing import TYPE_CHECKING

from harness.files.userfiles import write_text
from harness.report.terminal import plain
from nfparity.cli.options import (
    add_level,
    add_output,
    add_rules,
    input_options,
    print_notes,
    print_unknown,
)
from nfparity.inputs.rules import load_large_rules
from translate.errors import InputError, Note, Refusal, UnsupportedError

if TYPE_CHECKING:
    from translate.condense import CondensedRuleset
    from translate.ir import Origin, Ruleset

    _Rules = Ruleset | CondensedRuleset

_EXAMPLE = """\
example:
  iptables-save | nfparity translate - --to nft > rules.nft && nft -c -f rules.nft

nft: one transaction that replaces the table that nfparity owns, and changes no other. bpf: the C program,
with the contents of its maps as comments. iptables: the rules as read. ir: the form between rules and
translation (docs/ir.md); with --after PASS after one of the passes. A rule that cannot be expressed exactly
is refused, with its line and the reason (exit status 2). Known limits, such as the size of a list of
-m recent, are printed on standard error.

With --against, nft prints one transaction for a table with the translation of OLD at the same level: the
elements to add and delete, and chains and maps if the shapes of chains change. If a map needs another
type, the whole table is printed. nft rejects the transaction if another table is loaded, and then nothing
changes. Established connections keep their NAT. bpf prints the map entries to write and delete, one per
line, in the order to apply them; if the shapes of chains change, or a map becomes too large, the whole
program is printed.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser)
    parser.add_argument(
        "--to", choices=("nft", "bpf", "iptables", "ir"), required=True, help="the output form"
    )
    add_level(parser)
    parser.add_argument(
        "--after",
        metavar="PASS",
        help="with --to ir: print the Program after this pass of the level; default: the last pass",
    )
    parser.add_argument(
        "--against",
        metavar="OLD",
        help="rules whose translation is loaded, read like RULES: print only the changes",
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="leave refused rules out: a counter stands in the place of each, and all are listed at the top;"
        " exit status 1",
    )
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the translation."""
    if arguments.after is not None:
        _check_pass(arguments.after, arguments.to, arguments.level)
    from translate.condense import sample_of

    ruleset = load_large_rules(arguments.rules, input_options(arguments))
    print_unknown(sample_of(ruleset))
    if arguments.against is not None:
        if arguments.rules == arguments.against == "-":
            raise InputError("RULES and --against cannot both be standard input")
        old = load_large_rules(arguments.against, input_options(arguments))
        text = _changed(old, ruleset, arguments.to, arguments.level)
    elif arguments.keep_going:
        text, gaps = _with_gaps(ruleset, arguments.to, arguments.level)
        write_text(arguments.output, text)
        return 1 if gaps else 0
    else:
        text, notes = _translated(ruleset, arguments.to, arguments.level, arguments.after)
        print_notes(notes)
    write_text(arguments.output, text)
    return 0


def _with_gaps(ruleset: _Rules, to: str, level: int) -> tuple[str, int]:
    """Return the translation of all rules but those that are refused, and the number of those."""
    from translate.condense import whole_ruleset
    from translate.gaps import leave_out

    if to not in ("nft", "bpf"):
        raise InputError(f"--keep-going goes with --to nft and --to bpf, not with --to {to}")
    whole = whole_ruleset(ruleset)
    gaps: dict[Origin, Refusal] = {}
    bare: set[Origin] = set()
    while True:
        try:
            text, notes = _translated(leave_out(whole, gaps, bare=bare), to, level, None)
            break
        except UnsupportedError as e:
            places = {refusal.origin for refusal in e.refusals}
            if not all(place.line for place in places - bare) or places <= bare:
                raise
            bare |= places & gaps.keys()
            gaps |= {refusal.origin: refusal for refusal in e.refusals if refusal.origin not in gaps}
    print_notes(note for note in notes if note.origin not in gaps)
    if not gaps:
        return text, 0
    refusals = sorted(gaps.values(), key=lambda refusal: refusal.origin.line)
    sign = "#" if to == "nft" else "//"
    lines = [f"INCOMPLETE: {len(refusals)} rules are not translated; gap_line_N counts what comes to line N"]
    lines += [f"line {one.origin.line}: {one.reason}: {plain(one.origin.text)}" for one in refusals]
    print(f"nfparity: {UnsupportedError(tuple(refusals))}", file=sys.stderr)
    return "".join(f"{sign} {line}\n" for line in lines) + text, len(refusals)


def _check_pass(name: str, to: str, level: int) -> None:
    """Raise InputError for a pass that the level does not have, or without --to ir."""
    from translate.passes import pass_names

    if to != "ir":
        raise InputError(f"--after goes with --to ir, not with --to {to}")
    names = pass_names(level)
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise InputError(f"-O{level} has no pass {name!r}{hint} Its passes are: {', '.join(names)}")


def _changed(old: _Rules, new: _Rules, to: str, level: int) -> str:
    if to in ("iptables", "ir"):
        raise InputError(f"--against goes with --to nft and --to bpf, not with --to {to}")
    from translate.condense import emit_nft, lower, sample_of

    old_family, new_family = sample_of(old).family, sample_of(new).family
    if old_family is not new_family:
        raise InputError(f"the rules of --against are for {old_family.value}, RULES for {new_family.value}")
    if to == "bpf":
        return _changed_maps(old, new, level)
    wanted = emit_nft(lower(new, level=level))
    print_notes(wanted.notes)
    change = wanted.change_from(emit_nft(lower(old, level=level)))
    counts = f"{change.added} elements added, {change.deleted} deleted"
    print(f"nfparity: change: {change.kind.value}, {counts}", file=sys.stderr)
    return change.text


def _changed_maps(old: _Rules, new: _Rules, level: int) -> str:
    from translate import bpf
    from translate.condense import lower, whole_program

    wanted = bpf.emit(whole_program(lower(new, level=level)))
    print_notes(wanted.notes)
    change = bpf.change_between(bpf.emit(whole_program(lower(old, level=level))), wanted)
    counts = f"{change.written} entries written, {change.deleted} deleted"
    kind = "replacement" if change.replacement else "entries" if change.steps else "nothing"
    print(f"nfparity: change: {kind}, {counts}", file=sys.stderr)
    return change.render()


def _translated(ruleset: _Rules, to: str, level: int, after: str | None) -> tuple[str, tuple[Note, ...]]:
    from translate.condense import emit_nft, lower, whole_program, whole_ruleset

    if to == "iptables":
        from translate.write import write_save

        return write_save(whole_ruleset(ruleset)), ()
    if to == "ir":
        from translate import passes
        from translate.irtext import print_program

        if after is None:
            return print_program(whole_program(lower(ruleset, level=level))), ()
        return print_program(passes.lower(whole_ruleset(ruleset), level=level, after=after)), ()
    if to == "nft":
        output = emit_nft(lower(ruleset, level=level))
        return output.text, tuple(output.notes)
    from translate import bpf

    made = bpf.emit(whole_program(lower(ruleset, level=level)))
    return made.render(), tuple(made.notes)
