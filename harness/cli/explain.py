"""``nfparity explain``: the path of one packet, rule by rule, and why."""

from __future__ import annotations

import argparse
import sys

from backends.contract import Job
from harness.batches import load_node, load_rules
from harness.cli.options import add_format, add_node, add_rules, print_assumptions

_EXAMPLE = """\
example:
  nfparity explain rules.iptables-save --node node.json \\
    --packet "udp 10.244.0.3:40000 > 10.96.0.10:53 in dns3"

a packet is PROTO SRC[:PORT] > DST[:PORT], then options: in IFACE (- or "from node": made on the
node; default: where the route to SRC leads), ttl N, mark N, flags SA, type 8/0, id N, bad-checksum
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser)
    parser.add_argument("--packet", metavar="P", required=True, help="the packet, see below")
    add_node(parser)
    parser.add_argument("--reply", action="store_true", help="the path of the reply, too")
    parser.add_argument("--all", action="store_true", help="every rule that does not match, one by one")
    add_format(parser, "text", "json")


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation."""
    from harness.explain import explain
    from harness.packetspec import parse_packet

    ruleset = load_rules(arguments.rules, arguments.family)
    node = load_node(arguments.node, ruleset)
    print_assumptions(node)
    flow = parse_packet(arguments.packet, node)
    explanation = explain(Job(ruleset=ruleset, node=node), flow)
    if arguments.format == "json":
        from harness.report.pathjson import explanation_json

        sys.stdout.write(explanation_json(explanation))
    else:
        from harness.report.path import print_explanation

        print_explanation(explanation, sys.stdout, with_reply=arguments.reply, every_rule=arguments.all)
    return 0
