"""``nfparity graph``: the chains and the jumps between them."""

from __future__ import annotations

import argparse
import json
import sys

from nfparity.cli.options import add_format, add_rules, input_options, print_unknown
from nfparity.inputs.rules import load_pieces, load_rules
from translate.ir import Ruleset

_EXAMPLE = """\
example:
  nfparity graph rules.iptables-save --chain KUBE-SERVICES
  nfparity graph rules.iptables-save --format svg >rules.svg

svg is a picture for a browser or for paper. Tables with many chains have one box for all chains of one
class: those of services that differ only in addresses and in their numbers of endpoints. --chain NAME draws
the part below a chain, where fewer are together. dot is a graph of all chains, for Graphviz.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser)
    parser.add_argument("--chain", metavar="CHAIN", help="only this chain and those that it leads to")
    add_format(parser, "text", "svg", "dot", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print the graph."""
    from harness.explain.graph import dot_text, tree_lines

    options = input_options(arguments)
    if arguments.format == "text" and arguments.chain is None:
        pieces = load_pieces(arguments.rules, options)
    else:
        pieces = (load_rules(arguments.rules, options),)
    for number, ruleset in enumerate(pieces, 1):
        print_unknown(ruleset)
        if len(pieces) > 1:
            print(f"ruleset {number} of {len(pieces)}")
        if arguments.format == "svg":
            from harness.report.graphsvg import svg_text

            sys.stdout.write(svg_text(ruleset, start=arguments.chain))
        elif arguments.format == "dot":
            sys.stdout.write(dot_text(ruleset))
        elif arguments.format == "json":
            print(json.dumps(_data(ruleset), indent=2))
        else:
            for line in tree_lines(ruleset, start=arguments.chain):
                print(line)
    return 0


def _data(ruleset: Ruleset) -> list[dict[str, object]]:
    from harness.explain.graph import calls

    return [
        {
            "table": c.table,
            "caller": c.caller,
            "callee": c.callee,
            "goto": c.goto,
            "file": c.rule.origin.file,
            "line": c.rule.origin.line,
        }
        for c in calls(ruleset)
    ]
