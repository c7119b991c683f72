"""``nfparity simulate``: what becomes of packets, as JSON Lines."""

from __future__ import annotations

import argparse
import json
import sys

from backends.contract import Job
from harness.backends import REFERENCE, backend
from harness.batches import load_batches, select
from harness.cli.options import (
    add_corpus,
    add_only,
    add_rules,
    input_options,
    print_assumptions,
    print_unknown,
)

_EXAMPLE = """\
example:
  nfparity simulate rules.iptables-save --node node.json --corpus flows.jsonl
  echo '{"id": "a", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 4000, "dport": 53}' |
    nfparity simulate rules.iptables-save --corpus -
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser, optional=True)
    add_corpus(parser, required=True)
    add_only(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line per flow: every branch with its exact probability."""
    from harness.outcomes import result_to_json

    batches = load_batches(
        rules=arguments.rules,
        corpus=arguments.corpus,
        node=arguments.node,
        options=input_options(arguments),
    )
    simulator = backend(REFERENCE)
    for batch in select(batches, arguments.only):
        print_unknown(batch.ruleset)
        print_assumptions(batch.node)
        with simulator.open(Job(ruleset=batch.ruleset, node=batch.node)) as session:
            for flow, result in zip(batch.flows, session.replay(batch.flows), strict=True):
                line = json.dumps(result_to_json(result, flow.family), ensure_ascii=False)
                sys.stdout.write(line + "\n")
    return 0
