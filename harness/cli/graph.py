"""``nfparity graph``: the chains and who calls whom."""

from __future__ import annotations

import argparse
import json
import sys

from harness.batches import load_rules
from harness.cli.options import add_format, add_rules

_EXAMPLE = """\
example:
  nfparity graph rules.iptables-save --from KUBE-SERVICES
  nfparity graph rules.iptables-save --format dot | dot -Tsvg > rules.svg
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser)
    parser.add_argument("--from", dest="start", metavar="CHAIN", help="only what this chain leads to")
    add_format(parser, "text", "dot", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print the graph."""
    from harness.graph import calls, dot_text, tree_lines

    ruleset = load_rules(arguments.rules, arguments.family)
    if arguments.format == "dot":
        sys.stdout.write(dot_text(ruleset))
    elif arguments.format == "json":
        data = [
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
        print(json.dumps(data, indent=2))
    else:
        for line in tree_lines(ruleset, start=arguments.start):
            print(line)
    return 0
