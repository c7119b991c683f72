"""``nfparity explain``: the path of one packet, rule by rule, with the reasons; or the rules in words."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import Final

from backends.model.contract import Job
from backends.model.flow import Flow
from backends.model.node import Node
from nfparity.cli.options import (
    add_format,
    add_node,
    add_rules,
    input_options,
    print_assumptions,
    print_unknown,
)
from nfparity.inputs.batches import load_capture, load_node
from nfparity.inputs.rules import load_pieces, load_rules
from translate.dataclass import asdict
from translate.errors import InputError
from translate.ir import Ruleset

_EXAMPLE = """\
example:
  nfparity explain rules.iptables-save --node node.json \\
    --packet "udp 10.244.0.3:40000 > 10.96.0.10:53 in dns3"
  iptables -t nat -L | nfparity explain - --table nat
  nfparity explain node.tar.gz --packet "tcp 10.244.0.3 -> shop/web:http"
  nfparity explain node.tar.gz --pcap packets.pcap --frame 7
  nfparity explain --extract page.txt

Without a packet, every rule is described in words, with the parts that the input hides. If a hidden part
decides about a packet, both branches are shown with their assumptions. --format svg draws the path of the
likeliest branch, --format html all of them.

a packet is PROTO SRC[:PORT] > DST[:PORT], then options: in IFACE (- or "from node": sent by the node;
default: the interface of the route to SRC), ttl N, mark N, flags SA, type 8/0, id N, bad-checksum.
-> is read as >, and DST may be a service of kube-proxy's rules: NAMESPACE/SERVICE:PORT
"""


_FRAMES: Final = 20
"""The maximum number of frames in a message."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser)
    parser.add_argument("--packet", metavar="P", help="the packet, see below; default: describe the rules")
    parser.add_argument("--pcap", metavar="FILE", help="take the packet from a pcap or pcapng file")
    parser.add_argument(
        "--frame",
        type=int,
        metavar="N",
        help="with --pcap: the frame that begins a flow; default: the first",
    )
    add_node(parser)
    parser.add_argument("--reply", action="store_true", help="also show the path of the reply")
    parser.add_argument("-v", "--verbose", action="store_true", help="also show the path, rule by rule")
    parser.add_argument(
        "--all", action="store_true", help="with -v: also show every rule that does not match"
    )
    add_format(parser, "text", "json", "html", "svg")


def run(arguments: argparse.Namespace) -> int:
    """Print the explanation."""
    if arguments.packet is not None and arguments.pcap is not None:
        raise InputError("--packet and --pcap both give the packet; leave one of them out")
    if arguments.frame is not None and arguments.pcap is None:
        raise InputError("--frame is a frame of a capture; give --pcap")
    if arguments.packet is None and arguments.pcap is None:
        if arguments.format in ("html", "svg"):
            raise InputError(
                f"--format {arguments.format} shows the path of a packet; give --packet or --pcap"
            )
        return _describe(arguments)
    from harness.explain.explain import explain

    ruleset = load_rules(arguments.rules, input_options(arguments))
    print_unknown(ruleset)
    node = load_node(arguments.node, ruleset, rules=arguments.rules)
    print_assumptions(node)
    flow = _flow(arguments, ruleset, node)
    explanation = explain(Job(rules=ruleset, node=node), flow)
    if arguments.format == "json":
        from harness.report.pathjson import explanation_json

        sys.stdout.write(explanation_json(explanation))
    elif arguments.format == "svg":
        from nfparity.report.pages.picture import explanation_picture

        sys.stdout.write(explanation_picture(explanation))
    elif arguments.format == "html":
        from nfparity.cli.main import VERSION
        from nfparity.report.pages.explanation import explanation_page

        page = explanation_page(
            explanation,
            with_reply=arguments.reply,
            every_rule=arguments.all,
            command=_command(arguments),
            version=VERSION,
        )
        sys.stdout.write(page)
    else:
        from harness.report.explanation import print_explanation

        print_explanation(
            explanation,
            sys.stdout,
            with_reply=arguments.reply,
            every_rule=arguments.all,
            whole_path=arguments.verbose or arguments.all,
        )
    return 0


def _flow(arguments: argparse.Namespace, ruleset: Ruleset, node: Node) -> Flow:
    """Return the flow that begins with the packet."""
    if arguments.pcap is None:
        from harness.explain.packetspec import parse_packet
        from nfparity.inputs.servicenames import service_addresses

        return parse_packet(arguments.packet, node, service_addresses(ruleset))
    flows = load_capture(arguments.pcap, node, family=ruleset.family)
    if arguments.frame is None:
        return flows[0]
    frames = {flow.source.rpartition(":")[2]: flow for flow in flows}
    if str(arguments.frame) not in frames:
        raise InputError(
            f"{arguments.pcap}: frame {arguments.frame} begins no flow;"
            f" these do: {', '.join(list(frames)[:_FRAMES])}"
        )
    return frames[str(arguments.frame)]


def _command(arguments: argparse.Namespace) -> str:
    """Return the command of this page."""
    words = ["nfparity", "explain", arguments.rules, *input_options(arguments).words()]
    if arguments.node is not None:
        words += ["--node", arguments.node]
    words += ["--packet", arguments.packet] if arguments.pcap is None else ["--pcap", arguments.pcap]
    words += [] if arguments.frame is None else ["--frame", str(arguments.frame)]
    words += ["--reply"] if arguments.reply else []
    words += ["--all"] if arguments.all else []
    return shlex.join([*words, "--format", "html"])


def _describe(arguments: argparse.Namespace) -> int:
    from harness.explain.description import describe, description_lines

    pieces = load_pieces(arguments.rules, input_options(arguments))
    if arguments.format == "json":
        data = [
            {"unknown": piece.unknown, "rules": [asdict(rule) for rule in describe(piece)]}
            for piece in pieces
        ]
        print(json.dumps(data, indent=2, ensure_ascii=False))
        return 0
    for number, piece in enumerate(pieces, 1):
        if len(pieces) > 1:
            print(f"ruleset {number} of {len(pieces)}")
        for line in description_lines(piece):
            print(line)
    return 0
