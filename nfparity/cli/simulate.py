"""``nfparity simulate``: the outcomes of packets, as JSON Lines."""

from __future__ import annotations

import argparse
import json
import sys

from backends.model.contract import Job
from harness.diff.batch import select
from nfparity.cli.options import (
    add_corpus,
    add_only,
    add_rules,
    input_options,
    print_assumptions,
    print_unknown,
)
from nfparity.inputs.batches import load_batches

_EXAMPLE = """\
example:
  nfparity simulate rules.iptables-save --node node.json --corpus flows.jsonl
  echo '{"id": "a", "src": "10.244.0.5", "dst": "10.96.0.10", "proto": "udp", "sport": 4000, "dport": 53}' |
    nfparity simulate rules.iptables-save --corpus -
  iptables -t nat -L -n | nfparity simulate - --table nat --corpus flows.jsonl

If the input hides a condition (interfaces in a listing without -v, chains that are not listed), both
possibilities are simulated, and "assuming" lists the lines that must or must not match for an outcome. The
verdict is "unknown" if the input hides the target itself.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser, optional=True)
    add_corpus(parser, required=True)
    add_only(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one line per flow: every branch with its exact probability and its assumptions."""
    from backends.simulator import Simulation
    from harness.corpus.formats.outcomes import result_to_json

    batches = load_batches(
        rules=arguments.rules,
        corpus=arguments.corpus,
        node=arguments.node,
        options=input_options(arguments),
    )
    for batch in select(batches, arguments.only):
        print_unknown(batch.ruleset)
        print_assumptions(batch.node)
        simulation = Simulation(Job(rules=batch.ruleset, node=batch.node), assuming=True)
        for flow in batch.flows:
            line = result_to_json(simulation.simulate(flow), flow.family)
            sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    return 0
