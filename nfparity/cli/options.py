"""Options that several commands share."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from backends.model.variant import Variant
from harness.corpus.formats.rulefile import IPSETS_FILE, InputOptions
from harness.report.notes import note_lines
from translate.errors import Note
from translate.ir import Family, Ruleset, TableName
from translate.read import InputForm, SetForm

if TYPE_CHECKING:
    from backends.model.node import Node

__all__ = [
    "add_corpus",
    "add_format",
    "add_level",
    "add_miss",
    "add_no_cache",
    "add_no_times",
    "add_node",
    "add_only",
    "add_output",
    "add_rules",
    "input_options",
    "print_assumptions",
    "print_notes",
    "print_unknown",
    "probability",
]


def add_rules(
    parser: argparse.ArgumentParser, *, optional: bool = False, named: bool = False, purpose: str = ""
) -> None:
    """Add RULES, or ``--rules`` if ``named``, and the options for reading rules.

    ``optional``: RULES may be absent, because a folder of cases has its own. ``purpose`` ends the help of
    ``--rules``.
    """
    forms = (
        "output of iptables-save, iptables -S or iptables -L (or ip6tables), or input for iptables-restore; "
        "- is standard input. Or a snapshot (nfparity capture): a folder or a .tar.gz, with its node"
    )
    if named:
        parser.add_argument("--rules", metavar="RULES", help=f"{forms}; {purpose}")
    elif optional:
        folder = "; optional if the corpus is a folder of cases"
        parser.add_argument("rules", metavar="RULES", nargs="?", help=forms + folder)
    else:
        parser.add_argument("rules", metavar="RULES", help=forms)
    group = parser.add_argument_group("reading RULES")
    group.add_argument(
        "--family",
        type=Family,
        choices=tuple(Family),
        metavar="ip|ip6",
        help="family of the rules; default: by their addresses, else by their first comment, "
        "else by the file's name, else ip; in a snapshot: ip, unless it has only ip6 rules",
    )
    group.add_argument(
        "--input",
        dest="form",
        type=InputForm,
        choices=tuple(InputForm),
        metavar="save|restore|rules|listing",
        help="the form: iptables-save, a fragment for iptables-restore --noflush, iptables -S, "
        "iptables -L; default: recognised",
    )
    group.add_argument(
        "--table",
        type=TableName,
        choices=tuple(TableName),
        metavar="T",
        help="the table of iptables -S or -L output; default: filter, or the table that the rules show",
    )
    group.add_argument(
        "--extract", action="store_true", help="find the listings and dumps in a text with prose"
    )
    group.add_argument(
        "--ruleset",
        dest="ruleset_number",
        type=int,
        metavar="N",
        help="with --extract: only the Nth ruleset on the page",
    )
    group.add_argument(
        "--ipsets",
        metavar="FILE",
        help="the ipsets of the rules: output of ipset save or ipset list; default: the file "
        f"{IPSETS_FILE} next to the rules, if it exists",
    )
    group.add_argument(
        "--ipset-form",
        type=SetForm,
        choices=tuple(SetForm),
        metavar="save|listing",
        help="the form of the ipsets; default: recognised",
    )
    group.add_argument(
        "--variant",
        type=Variant,
        choices=tuple(Variant),
        metavar="legacy|nft",
        help="in a snapshot: the rules of iptables-legacy or of iptables-nft; default: whichever has rules",
    )


def input_options(arguments: argparse.Namespace) -> InputOptions:
    """Return the options that :func:`add_rules` has added."""
    return InputOptions(
        family=arguments.family,
        form=arguments.form,
        table=arguments.table,
        extract=arguments.extract,
        ruleset_number=arguments.ruleset_number,
        ipsets=arguments.ipsets,
        ipset_form=arguments.ipset_form,
        variant=arguments.variant,
    )


def add_node(parser: argparse.ArgumentParser) -> None:
    """Add ``--node``."""
    parser.add_argument(
        "--node",
        metavar="FILE",
        help="the node's interfaces and routes (JSON), or a snapshot; default: the node of the snapshot "
        "RULES, else inferred from the rules",
    )


def add_corpus(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add ``--corpus`` and ``--node``."""
    parser.add_argument(
        "--corpus",
        metavar="C",
        required=required,
        help="flows as JSON Lines (- is standard input), a pcap or pcapng file, or a folder of cases",
    )
    add_node(parser)


def add_only(parser: argparse.ArgumentParser) -> None:
    """Add ``--only``, which may be given several times."""
    parser.add_argument(
        "--only", metavar="ID", action="append", default=[], help="only this flow (may be repeated)"
    )


def add_level(parser: argparse.ArgumentParser) -> None:
    """Add ``-O``."""
    parser.add_argument(
        "-O",
        dest="level",
        type=int,
        choices=(0, 1, 2),
        default=2,
        help="optimisation: 0 rule by rule, 1 lookups and choices as maps, 2 (default) also one chain for "
        "all chains that differ only in constants",
    )


def add_no_cache(parser: argparse.ArgumentParser) -> None:
    """Add ``--no-cache``."""
    parser.add_argument(
        "--no-cache",
        action="store_true",
        help="compile tc programs again instead of using the user's cache folder",
    )


def add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Add ``--format``; the first is the default."""
    parser.add_argument("--format", choices=formats, default=formats[0], help=f"default: {formats[0]}")


def add_miss(parser: argparse.ArgumentParser) -> None:
    """Add ``--miss``."""
    from harness.diff.sampling import MISS

    parser.add_argument(
        "--miss",
        metavar="P",
        type=_chance,
        default=MISS,
        help="accepted chance, per flow and backend, of missing one of its outcomes; 1 runs each flow "
        f"once and reports the outcome of that run; default: {MISS:g}",
    )


def _chance(text: str) -> float:
    return 1.0 if text == "1" else probability(text)


def probability(text: str) -> float:
    """Return a number between 0 and 1, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 0 and 1")
    return value


def add_no_times(parser: argparse.ArgumentParser) -> None:
    """Add ``--no-times``."""
    parser.add_argument(
        "--no-times",
        action="store_true",
        help="leave out the time of each case (--format junit), which differs in every run",
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """Add ``-q``, which :func:`nfparity.cli.main.main` obeys."""
    parser.add_argument(
        "-q",
        "--quiet",
        action="store_true",
        help="print no progress and no notes on standard error; errors are printed",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add ``-o``."""
    parser.add_argument(
        "-o", dest="output", metavar="FILE", default="-", help="the output file; default: standard output"
    )


def print_assumptions(node: Node) -> None:
    """Print the assumptions about a node on standard error."""
    for assumption in node.assumed:
        print(f"nfparity: assumed {assumption}", file=sys.stderr)


def print_notes(notes: Iterable[Note]) -> None:
    """Print the notes of a translation on standard error: the limits in which it differs from iptables."""
    for line in note_lines(notes):
        print(f"nfparity: {line}", file=sys.stderr)


def print_unknown(ruleset: Ruleset) -> None:
    """Print on standard error the facts that the input hides, and its parts that have no effect."""
    for unknown in ruleset.unknown:
        print(f"nfparity: unknown: {unknown}", file=sys.stderr)
    for note in ruleset.notes:
        print(f"nfparity: note: {note}", file=sys.stderr)
