"""``nfparity diff``: the same packets through every backend, and the differences of their outcomes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from backends.model.contract import Backend
from harness.diff.backends import BACKENDS, REFERENCE, backend, parse_backends
from harness.diff.batch import Batch, select
from harness.diff.result import ParityReport
from harness.diff.sampling import MISS
from nfparity.cli.options import (
    add_corpus,
    add_format,
    add_level,
    add_miss,
    add_no_cache,
    add_no_times,
    add_only,
    add_quiet,
    add_rules,
    input_options,
    print_unknown,
    probability,
)
from nfparity.cli.reports import add_reports, check_reports, write_reports
from nfparity.inputs.batches import load_batches, load_node
from nfparity.inputs.rules import load_large_rules
from translate.dataclass import replace
from translate.errors import InputError

if TYPE_CHECKING:
    from nfparity.inputs.against import Against

_EXAMPLE = """\
example:
  nfparity diff rules.iptables-save --node node.json --corpus flows.jsonl
  nfparity diff --corpus tests/corpus/cases --backends nftables -O 0
  nfparity diff rules.iptables-save --node node.json --random 1000 --seed 7 --backends iptables-legacy
  nfparity diff rules.iptables-save --node node.json --corpus flows.jsonl --against kube-proxy.nft

The simulator computes every possible outcome of a flow; each other backend must show all of these outcomes
and no others. Flows with random outcomes are run until every outcome has been seen, except for a chance of
--miss; the same input gives the same report. Exit status 0: parity; 1: a difference; 4: no difference, but
not everything was tested, because a backend refuses a rule, or was named with --backends and cannot run here.
--without leaves out a backend on purpose. Backends that were not named are skipped, with the reason, if they
cannot run.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_rules(parser, optional=True)
    add_corpus(parser, required=False)
    parser.add_argument(
        "--random", metavar="N", type=_count, default=0, help="add N random flows around the rules' constants"
    )
    parser.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    parser.add_argument(
        "--backends", metavar="A,B", help=f"the backends to compare; default: all of {', '.join(BACKENDS)}"
    )
    parser.add_argument(
        "--without",
        metavar="A,B",
        help="leave these backends out; not testing them does not affect the exit status",
    )
    parser.add_argument(
        "--against",
        metavar="RULESET",
        help="compare the rules with this nftables ruleset: output of nft list ruleset (text or JSON), a "
        "file for nft -f, a snapshot, or - for standard input; other backends run only if named",
    )
    parser.add_argument(
        "--with-iptables",
        metavar="RULES",
        help="with --against: iptables rules that stay on the node; tested in both orders of registration if "
        "chains have the same hook and priority",
    )
    add_level(parser)
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=_count,
        default=0,
        help="run each flow with a random outcome at least N times, and test the shares",
    )
    add_miss(parser)
    parser.add_argument(
        "--false-alarms",
        metavar="P",
        type=probability,
        default=1e-6,
        help="accepted chance of reporting fair shares as unfair in the whole run; default: 1e-6",
    )
    parser.add_argument(
        "--shrink",
        metavar="FOLDER",
        help="write the first difference as a new case: the fewest rules and steps that still show it, "
        "with a report",
    )
    add_no_cache(parser)
    add_only(parser)
    add_format(parser, "text", "json", "junit", "sarif", "html")
    add_reports(parser)
    add_no_times(parser)
    add_quiet(parser)


def _count(text: str) -> int:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= value <= 10_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Print the report; return 0 for parity, 1 for differences, 4 if something was not tested."""
    from backends.replay.successive import workers_kept

    with workers_kept():
        return _run(arguments)


def _run(arguments: argparse.Namespace) -> int:
    from harness.diff.deciding_rules import deciding_rules
    from harness.diff.parity import Plan, choose_backends, run_parity
    from harness.report.progress import progress

    check_reports(arguments.reports)
    requested = arguments.backends is not None
    names = parse_backends(arguments.backends) if requested else tuple(BACKENDS)
    left_out = () if arguments.without is None else parse_backends(arguments.without)
    names = tuple(name for name in names if name not in left_out)
    if arguments.with_iptables is not None and arguments.against is None:
        raise InputError("--with-iptables needs --against")
    if arguments.shrink is not None and arguments.against is not None:
        raise InputError("--shrink cannot reduce the ruleset of --against")
    if arguments.shrink is not None and Path(arguments.shrink).exists():
        raise InputError(f"{arguments.shrink} exists; --shrink makes a new folder")
    against = None if arguments.against is None else _against(arguments)
    batches = _batches(arguments)
    for batch in batches:
        print_unknown(batch.rules.sample)
    if against is not None:
        names = (*(side.name for side in against.backends), *(names if requested else ()))
        requested = True
    make = {} if against is None else {side.name: side for side in against.backends}
    able, others = choose_backends(
        names,
        requested=requested,
        make=lambda n: make.get(n) or backend(n, cached=not arguments.no_cache),
    )
    if against is not None:
        others += against.untested
    options = [*input_options(arguments).words()]
    if arguments.miss != MISS:
        options += ["--miss", f"{arguments.miss:g}"]
    if arguments.random:
        options += ["--random", str(arguments.random), "--seed", str(arguments.seed)]
    plan = Plan(
        batches=batches,
        level=arguments.level,
        repeat=arguments.repeat,
        miss=arguments.miss,
        false_alarm_rate=arguments.false_alarms,
        options=tuple(options),
        against=None if against is None else against.backends[0].name,
        against_names=frozenset(make),
        with_iptables=arguments.with_iptables,
    )
    with progress(sys.stderr, [b.name for b in able]) as report_progress:
        report = run_parity(
            plan,
            able,
            reference=backend(REFERENCE),
            rules=deciding_rules,
            progress=report_progress,
        )
    report = replace(report, backends=report.backends + others)
    write_reports(
        arguments,
        lambda stream: _print(report, stream),
        lambda form: _rendered(report, batches, form, times=not arguments.no_times),
    )
    if arguments.shrink is not None:
        _shrink(arguments.shrink, report, batches, able, arguments.level)
    return report.status


def _print(report: ParityReport, stream: TextIO) -> None:
    from harness.report.text import print_parity

    print_parity(report, stream)


def _rendered(report: ParityReport, batches: Sequence[Batch], form: str, *, times: bool) -> str:
    """Return the report as JSON, JUnit, SARIF or HTML."""
    from nfparity.cli.main import VERSION

    match form:
        case "json":
            from harness.report.jsonreport import parity_json

            return parity_json(report)
        case "junit":
            from harness.report.junit import parity_junit

            return parity_junit(report, times=times)
        case "sarif":
            from harness.report.paritysarif import parity_sarif

            return parity_sarif(report, version=VERSION)
        case _:
            from nfparity.report.pages.parity import parity_page

            return parity_page(report, batches, version=VERSION)


def _shrink(
    folder: str, report: ParityReport, batches: Sequence[Batch], able: Sequence[Backend], level: int
) -> None:
    """Write the first difference, reduced, as a case. A difference of shares cannot be reduced."""
    from harness.shrink.proposals import Shown
    from harness.shrink.shrink import Shrinker, write_shrunk

    differences = [difference for difference in report.differences if difference.field != "share"]
    if not differences:
        print("nfparity: --shrink: no difference to reduce", file=sys.stderr)
        return
    first = differences[0]
    batch, flow = next(
        (b, f) for b in batches if b.rules_path == first.rules_path for f in b.flows if f.id == first.flow_id
    )
    shrinker = Shrinker(
        difference=first,
        backend=next(candidate for candidate in able if candidate.name == first.backend),
        reference=backend(REFERENCE),
        node=batch.node,
        level=level,
        tell=lambda rules, steps, tried: print(
            f"nfparity: rules left: {rules}, steps: {steps}; comparisons: {tried}", file=sys.stderr
        ),
    )
    shown = shrinker.shrink(Shown(batch.ruleset, flow))
    write_shrunk(Path(folder), shown, shrinker)
    print(f"nfparity: {folder}: the difference of {first.backend} in {first.field}, reduced", file=sys.stderr)


def _against(arguments: argparse.Namespace) -> Against:
    from nfparity.inputs.against import given_backends

    inputs = [arguments.rules, arguments.corpus, arguments.node, arguments.ipsets, arguments.against]
    if inputs.count("-") > 1:
        raise InputError("only one of rules, ipsets, corpus, node and --against can be standard input")
    return given_backends(arguments.against, arguments.with_iptables)


def _batches(arguments: argparse.Namespace) -> tuple[Batch, ...]:
    batches: tuple[Batch, ...] = ()
    if arguments.corpus is not None:
        batches = load_batches(
            rules=arguments.rules,
            corpus=arguments.corpus,
            node=arguments.node,
            options=input_options(arguments),
        )
    if arguments.random:
        batches = _with_random(arguments, batches)
    batches = select(batches, arguments.only)
    if not any(b.flows for b in batches):
        raise InputError("no flows to send; give --corpus, --random, or both")
    return batches


def _with_random(arguments: argparse.Namespace, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
    from harness.corpus.random.flows import random_flows

    if not batches:
        if arguments.rules is None:
            raise InputError("--random needs rules, or a corpus of cases with rules")
        rules = load_large_rules(arguments.rules, input_options(arguments))
        node = load_node(arguments.node, rules, rules=arguments.rules)
        batches = (
            Batch(
                rules_path=arguments.rules,
                rules=rules,
                node=node,
                flows=(),
                corpus=None,
                node_path=arguments.node,
            ),
        )
    drawn = []
    for batch in batches:
        flows = random_flows(batch.ruleset, batch.node, count=arguments.random, seed=arguments.seed)
        drawn.append(replace(batch, flows=batch.flows + tuple(flows)))
    return tuple(drawn)
