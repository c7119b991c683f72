"""``nfparity translate``: iptables rules as nftables rules, as a tc eBPF program, or as the Program IR."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, TypeVar

from harness.counted import counted
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
    from translate.bpf import BpfOutput
    from translate.ir import Rules
    from translate.nft import NftOutput, Offload

_Output = TypeVar("_Output")

_EXAMPLE = """\
example:
  iptables-save | nfparity translate - --to nft > rules.nft && nft -c -f rules.nft

nft: one transaction that replaces the table that nfparity owns, and changes no other. bpf: the C program,
with the contents of its maps as comments. iptables: the rules as read. ir: the intermediate form between
rules and translation (docs/ir.md); --after PASS: after this pass. A rule that cannot be expressed exactly
is refused, with its line and the reason (exit status 2). Known limits, such as the size of a list of
-m recent, are printed on standard error.

With --flowtable, packets of established connections skip PREROUTING, FORWARD and POSTROUTING. The rules
of these hooks must accept all of them and do nothing else; a rule for which this is not proven is refused.

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
        help="the rules whose translation is loaded now, in any format of RULES: print only the changes",
    )
    parser.add_argument(
        "--flowtable",
        metavar="DEV,DEV",
        help="with --to nft: forward established TCP and UDP connections between these devices by a"
        " flowtable; refused unless the rules accept all their later packets unchanged",
    )
    parser.add_argument(
        "--flowtable-unchecked",
        action="store_true",
        help="with --flowtable: accept that it also forwards packets that conntrack would find INVALID, and a"
        " second SYN",
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="leave refused rules out: a counter stands in the place of each, and all are listed at the top;"
        " exit status 1. With --against, refused rules of OLD are left out too",
    )
    add_output(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the translation."""
    to: str = arguments.to
    _check_options(arguments)
    rules = load_large_rules(arguments.rules, input_options(arguments))
    print_unknown(rules.sample)
    old: Rules | None = None
    if arguments.against is not None:
        old = load_large_rules(arguments.against, input_options(arguments))
        _check_families(old, rules)
    refusals: tuple[Refusal, ...] = ()
    match to:
        case "nft":
            offload = _offload(arguments.flowtable, arguments.flowtable_unchecked)
            text, refusals = _nft(rules, old, arguments.level, arguments.keep_going, offload)
        case "bpf":
            text, refusals = _bpf(rules, old, arguments.level, arguments.keep_going)
        case "ir":
            text = _ir(rules, arguments.level, arguments.after)
        case _:
            from translate.write import write_save

            text = write_save(rules.whole())
    write_text(arguments.output, text)
    return 1 if refusals else 0


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that exclude each other."""
    to: str = arguments.to
    if arguments.after is not None:
        _check_pass(arguments.after, to, arguments.level)
    for option, present in (("against", arguments.against is not None), ("keep-going", arguments.keep_going)):
        if present and to not in ("nft", "bpf"):
            raise InputError(f"--{option} needs --to nft or --to bpf, not --to {to}")
    if arguments.flowtable is not None:
        if to != "nft":
            raise InputError(f"--flowtable needs --to nft, not --to {to}")
        if arguments.against is not None or arguments.keep_going:
            option = "keep-going" if arguments.against is None else "against"
            raise InputError(f"--flowtable and --{option} cannot be used together")
    elif arguments.flowtable_unchecked:
        raise InputError("--flowtable-unchecked needs --flowtable")
    if arguments.rules == arguments.against == "-":
        raise InputError("RULES and --against cannot both be standard input")


def _check_pass(name: str, to: str, level: int) -> None:
    """Raise InputError for a pass that the level does not have, or without --to ir."""
    from translate.passes import pass_names

    if to != "ir":
        raise InputError(f"--after needs --to ir, not --to {to}")
    names = pass_names(level)
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise InputError(f"-O{level} has no pass {name!r}{hint} Its passes are: {', '.join(names)}")


def _check_families(old: Rules, new: Rules) -> None:
    """Raise InputError if the rules of --against are for the other family."""
    old_family, new_family = old.family, new.family
    if old_family is not new_family:
        raise InputError(f"the rules of --against are for {old_family.value}, RULES for {new_family.value}")


def _offload(devices: str | None, unchecked: bool) -> Offload | None:
    """Return the flowtable of the options."""
    from translate.nft import Offload

    if devices is None:
        return None
    return Offload(tuple(device.strip() for device in devices.split(",")), unchecked)


def _nft(
    rules: Rules, old: Rules | None, level: int, keep_going: bool, offload: Offload | None
) -> tuple[str, tuple[Refusal, ...]]:
    from translate.condense import emit_nft, lower, whole_program
    from translate.nft import offloading

    def emit(rules: Rules) -> NftOutput:
        program = lower(rules, level=level)
        output = emit_nft(program)
        return output if offload is None else offloading(output, whole_program(program), offload)

    output, refusals = _emitted(rules, emit, keep_going)
    _print_notes(output.notes, refusals)
    text = output.text
    if old is not None:
        change = output.change_from(_emitted(old, emit, keep_going)[0])
        counts = f"{counted(change.added, 'element')} added, {change.deleted} deleted"
        print(f"nfparity: change: {change.kind.value}, {counts}", file=sys.stderr)
        text = change.text
    return _header(refusals, "#") + text, refusals


def _bpf(rules: Rules, old: Rules | None, level: int, keep_going: bool) -> tuple[str, tuple[Refusal, ...]]:
    from translate import bpf
    from translate.condense import lower, whole_program

    def emit(rules: Rules) -> BpfOutput:
        return bpf.emit(whole_program(lower(rules, level=level)))

    output, refusals = _emitted(rules, emit, keep_going)
    _print_notes(output.notes, refusals)
    if old is None:
        return _header(refusals, "//") + output.render(), refusals
    change = bpf.change_between(_emitted(old, emit, keep_going)[0], output)
    counts = f"{counted(change.written, 'entry', 'entries')} written, {change.deleted} deleted"
    kind = "replacement" if change.replacement else "entries" if change.steps else "nothing"
    print(f"nfparity: change: {kind}, {counts}", file=sys.stderr)
    return _header(refusals, "//" if change.replacement else "#") + change.render(), refusals


def _ir(rules: Rules, level: int, after: str | None) -> str:
    from translate import passes
    from translate.condense import lower, whole_program
    from translate.irtext import print_program

    if after is None:
        return print_program(whole_program(lower(rules, level=level)))
    return print_program(passes.lower(rules.whole(), level=level, after=after))


def _emitted(
    rules: Rules, emit: Callable[[Rules], _Output], keep_going: bool
) -> tuple[_Output, tuple[Refusal, ...]]:
    """Return the output, and with ``keep_going`` the refusals of the rules that it leaves out."""
    if not keep_going:
        return emit(rules), ()
    from translate.gaps import translate_with_gaps

    return translate_with_gaps(rules.whole(), emit)


def _print_notes(notes: Iterable[Note], refusals: tuple[Refusal, ...]) -> None:
    """Print the refusals, and the notes except those about the counter of a rule that is left out."""
    left_out = {refusal.origin for refusal in refusals}
    print_notes(note for note in notes if note.origin not in left_out)
    if refusals:
        print(f"nfparity: {UnsupportedError(refusals)}", file=sys.stderr)


def _header(refusals: tuple[Refusal, ...], sign: str) -> str:
    """Return the list of the rules that are left out, as comments that begin with ``sign``."""
    if not refusals:
        return ""
    rules = counted(len(refusals), "rule is", "rules are")
    lines = [f"INCOMPLETE: {rules} not translated; gap_line_N counts the packets at line N"]
    lines += [f"line {r.origin.line}: {r.reason}: {plain(r.origin.text)}" for r in refusals]
    return "".join(f"{sign} {line}\n" for line in lines)
