"""``nfparity corpus``: generate, check, record, shrink, import and export flows; measure coverage."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path

from backends.model.contract import Job
from harness.counted import counted
from harness.diff.backends import REFERENCE, backend
from harness.diff.batch import Batch, select
from harness.files.userfiles import write_text
from nfparity.cli.options import (
    add_corpus,
    add_format,
    add_level,
    add_no_cache,
    add_node,
    add_only,
    add_output,
    add_rules,
    input_options,
    print_assumptions,
    print_unknown,
)
from nfparity.inputs.batches import load_batches, load_flows, load_node
from nfparity.inputs.rules import load_rules
from translate.errors import InputError

_EXAMPLE = """\
example:
  nfparity corpus generate rules.iptables-save --node node.json -o flows.jsonl
  nfparity corpus coverage --corpus tests/corpus/cases
  nfparity corpus coverage --corpus tests/corpus/cases --format html >coverage.html
  nfparity corpus check tests/corpus/cases
  nfparity corpus import capture.pcap --rules rules.iptables-save > flows.jsonl
  nfparity corpus import capture.pcapng --rules rules.iptables-save --case cases/odd-reset
  nfparity corpus shrink --corpus cases --backends nftables -o faults
  nfparity corpus export flows.jsonl --node node.json -o flows.pcapng
"""

_GENERATE_EXAMPLE = """\
example:
  nfparity corpus generate rules.iptables-save --node node.json --seed 7 -o flows.jsonl
  nfparity diff rules.iptables-save --node node.json --corpus flows.jsonl --repeat 50
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    generate = actions.add_parser(
        "generate",
        help="generate flows for every rule and every service",
        description="For every rule and every hook that leads to it: a flow that matches the rule, and for"
        " each of its tests a flow that fails only this test. For every service: flows from inside the"
        " cluster, from outside, from the node and from its own endpoints. If services differ only in"
        " constants, flows are searched for a few of them, and copied to the others with their own"
        " constants; with --exhaustive, all services are searched. Rules without a matching flow are"
        " listed on standard error with the"
        " reason; exit status 1 if one of them is not proven unreachable.",
        epilog=_GENERATE_EXAMPLE,
        formatter_class=parser.formatter_class,
    )
    add_rules(generate)
    add_node(generate)
    generate.add_argument("--seed", type=int, default=0, help="random seed (default: 0)")
    generate.add_argument(
        "--exhaustive",
        action="store_true",
        help="search for every service, also if it differs from others only in constants; for small clusters",
    )
    add_output(generate)
    check = actions.add_parser("check", help="compare the simulator with the expectations of cases")
    check.add_argument("folder", metavar="CASES", help="a folder of cases, or one case")
    add_format(check, "text", "json")
    record = actions.add_parser("record", help="rewrite the expectations of cases, to review as a diff")
    record.add_argument("folder", metavar="CASES", help="a folder of cases, or one case")
    coverage = actions.add_parser(
        "coverage", help="list the rules that a corpus hits, and those that nothing can reach"
    )
    add_rules(coverage, optional=True)
    add_corpus(coverage, required=True)
    add_only(coverage)
    coverage.add_argument(
        "--counted-by",
        choices=("simulator", "iptables-legacy"),
        default="simulator",
        help="the counts: from the simulator's trace, or from the rule counters of the kernel",
    )
    add_format(coverage, "text", "json", "html")
    _configure_shrink(
        actions.add_parser(
            "shrink",
            help="reduce each difference of a corpus to a few rules and packets",
            description="For each difference that the flows show: a folder with the fewest rules and the"
            " shortest flow that still show it, as a case, with a report. --translator tests another"
            " translator of iptables rules instead of nfparity's backends: its command prints nftables"
            " rules, which nft loads. Exit status 1 if there are differences.",
            formatter_class=parser.formatter_class,
        )
    )
    for name, what in (
        ("import", "convert a capture to flows, or to a case"),
        ("export", "convert flows to a capture"),
    ):
        sub = actions.add_parser(name, help=what)
        source = "a pcap or pcapng file" if name == "import" else "flows as JSON Lines"
        sub.add_argument("source", metavar="FILE", help=source)
        add_rules(sub, named=True, purpose="the node is inferred from them")
        sub.add_argument("--node", metavar="FILE", help="the node's interfaces and routes (JSON)")
        if name == "export":
            sub.add_argument(
                "--left",
                action="store_true",
                help="export the packets as they leave the node (needs --rules)",
            )
            sub.add_argument("-o", dest="output", metavar="FILE", required=True, help="….pcap or ….pcapng")
        else:
            sub.add_argument(
                "--case",
                metavar="FOLDER",
                help="make a case: rules, node, flows and expected outcomes (needs --rules)",
            )
            sub.add_argument("--purpose", metavar="TEXT", help="with --case: the purpose of the case")
            add_output(sub)


def _configure_shrink(shrink: argparse.ArgumentParser) -> None:
    add_rules(shrink, optional=True)
    add_corpus(shrink, required=True)
    add_only(shrink)
    shrink.add_argument("--backends", metavar="A,B", default="nftables", help="default: nftables")
    shrink.add_argument(
        "--translator",
        metavar="COMMAND",
        help="a command that prints the translation of the rules in the file {}, for example"
        " 'iptables-restore-translate -f {}'",
    )
    add_level(shrink)
    add_no_cache(shrink)
    shrink.add_argument("--most", metavar="N", type=int, default=20, help="at most N folders; default: 20")
    shrink.add_argument(
        "-o", dest="output", metavar="FOLDER", required=True, help="the new folder of the cases"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the selected action and return its exit status."""
    match arguments.action:
        case "generate":
            return _generate(arguments)
        case "check":
            return _check(arguments)
        case "record":
            return _record(arguments)
        case "coverage":
            return _coverage(arguments)
        case "shrink":
            return _shrink(arguments)
        case "import":
            return _import(arguments)
        case _:
            return _export(arguments)


def _generate(arguments: argparse.Namespace) -> int:
    from harness.corpus.formats.jsonlines import write_flows
    from harness.corpus.generate import generate_corpus
    from harness.report.generated import print_generated

    ruleset = load_rules(arguments.rules, input_options(arguments))
    node = load_node(arguments.node, ruleset, rules=arguments.rules)
    print_unknown(ruleset)
    print_assumptions(node)
    job = Job(rules=ruleset, node=node)
    made = generate_corpus(job, seed=arguments.seed, exhaustive=arguments.exhaustive)
    write_text(arguments.output, write_flows(made.flows))
    print_generated(made, sys.stderr)
    return 1 if made.coverage.missed else 0


def _check(arguments: argparse.Namespace) -> int:
    from harness.corpus.cases import read_cases
    from harness.corpus.expectations import check_case
    from harness.report.terminal import plain

    cases = read_cases(Path(arguments.folder))
    checked = [(case, check_case(case)) for case in cases]
    failures = [(case.name, failure) for case, failures in checked for failure in failures]
    if arguments.format == "json":
        data = [{"case": name, "flow": f.flow_id, "message": f.message} for name, f in failures]
        print(json.dumps({"flows": sum(len(c.flows) for c in cases), "failures": data}, indent=2))
    else:
        for name, failure in failures:
            print(f"{name}: {plain(failure.flow_id)}: {failure.message}")
        flows = sum(len(c.flows) for c in cases)
        print(f"{counted(len(cases), 'case')}, {counted(flows, 'flow')}, {len(failures)} not as expected")
    return 1 if failures else 0


def _record(arguments: argparse.Namespace) -> int:
    from harness.corpus.cases import EXPECT_FILE, read_cases
    from harness.corpus.expectations import expectations

    for case in read_cases(Path(arguments.folder), with_expected=False):
        write_text(case.folder / EXPECT_FILE, expectations(case))
        print(f"{case.folder / EXPECT_FILE}: {counted(len(case.flows), 'flow')}")
    return 0


def _coverage(arguments: argparse.Namespace) -> int:
    from harness.corpus.coverage import count_in_simulator, coverage
    from harness.diff.kernelcounts import count_in_kernel
    from harness.report.rules import coverage_to_json, print_coverage

    batches = load_batches(
        rules=arguments.rules,
        corpus=arguments.corpus,
        node=arguments.node,
        options=input_options(arguments),
    )
    by_rules: dict[str, list[Batch]] = {}
    for batch in select(batches, arguments.only):
        print_unknown(batch.ruleset)
        by_rules.setdefault(batch.rules_path, []).append(batch)
    count = count_in_simulator if arguments.counted_by == "simulator" else count_in_kernel
    reports = []
    for group in by_rules.values():
        counts = [count(Job(rules=b.ruleset, node=b.node), b.flows) for b in group]
        flows = sum(len(b.flows) for b in group)
        reports.append(coverage(group[0].ruleset, counts, counted_by=arguments.counted_by, flows=flows))
    if arguments.format == "json":
        print(json.dumps([coverage_to_json(r) for r in reports], indent=2, ensure_ascii=False))
    elif arguments.format == "html":
        from nfparity.cli.main import VERSION
        from nfparity.report.pages.coverage import Covered, coverage_page

        covered = [Covered(r, group[0].ruleset) for r, group in zip(reports, by_rules.values(), strict=True)]
        sys.stdout.write(coverage_page(covered, command=_coverage_command(arguments), version=VERSION))
    else:
        for report in reports:
            print_coverage(report, sys.stdout)
    return 1 if any(r.missed for r in reports) else 0


def _coverage_command(arguments: argparse.Namespace) -> str:
    """Return the command of this page."""
    words = ["nfparity", "corpus", "coverage", *([arguments.rules] if arguments.rules is not None else [])]
    words += input_options(arguments).words()
    words += ["--corpus", arguments.corpus]
    if arguments.node is not None:
        words += ["--node", arguments.node]
    for flow in arguments.only:
        words += ["--only", flow]
    if arguments.counted_by != "simulator":
        words += ["--counted-by", arguments.counted_by]
    return shlex.join([*words, "--format", "html"])


def _shrink(arguments: argparse.Namespace) -> int:
    from harness.diff.backends import parse_backends
    from harness.diff.parity import choose_backends
    from harness.shrink.reductions import reduce_differences
    from harness.shrink.translator import Translator

    if Path(arguments.output).exists():
        raise InputError(f"{arguments.output} exists; corpus shrink makes a new folder")
    translator = None if arguments.translator is None else Translator(arguments.translator)
    names = parse_backends(arguments.backends) if translator is None else (translator.name,)
    able, _ = choose_backends(
        names, requested=True, make=lambda name: translator or backend(name, cached=not arguments.no_cache)
    )
    batches = load_batches(
        rules=arguments.rules,
        corpus=arguments.corpus,
        node=arguments.node,
        options=input_options(arguments),
    )
    made = reduce_differences(
        select(batches, arguments.only),
        able,
        reference=backend(REFERENCE),
        level=arguments.level,
        folder=Path(arguments.output),
        most=arguments.most,
        tell=lambda *_: None,
    )
    for each in made:
        sizes = f"{counted(each.rules, 'rule')}, {counted(each.steps, 'step')}"
        print(f"{each.folder}: {each.what}: {sizes}, after {counted(each.comparisons, 'comparison')}")
    print(f"{counted(len(made), 'difference')}, reduced")
    return 1 if made else 0


def _job(arguments: argparse.Namespace) -> Job:
    if arguments.rules is None and arguments.node is None:
        raise InputError("the entry interfaces of packets depend on the node; give --node or --rules")
    if arguments.rules is None:
        from translate.ir import Family, Ruleset

        ruleset = Ruleset(family=Family.IP, tables=())
    else:
        ruleset = load_rules(arguments.rules, input_options(arguments))
    return Job(rules=ruleset, node=load_node(arguments.node, ruleset, rules=arguments.rules))


def _import(arguments: argparse.Namespace) -> int:
    from harness.corpus.formats.jsonlines import write_flows
    from harness.corpus.formats.pcap import import_packets

    if arguments.case is not None and arguments.rules is None:
        raise InputError("a case needs rules; give --rules")
    job = _job(arguments)
    family = None if arguments.rules is None else job.ruleset.family
    imported = import_packets(Path(arguments.source), node=job.node, family=family)
    for line in imported.left_out_lines():
        print(f"nfparity: left out {line}", file=sys.stderr)
    if arguments.case is None:
        write_text(arguments.output, write_flows(imported.flows))
        return 0
    from harness.corpus.newcase import write_case

    source = Path(arguments.source).name
    case = write_case(
        Path(arguments.case),
        job=job,
        flows=imported.flows,
        purpose=arguments.purpose or f"The packets of {source} keep their outcomes.",
        origin=f"{source}, with {Path(arguments.rules).name}",
    )
    print(f"{case.folder}: {counted(len(case.flows), 'flow')}")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from harness.corpus.formats.pcap import export_capture

    if arguments.left and arguments.rules is None:
        raise InputError("--left shows packets after the rules; give --rules")
    job = _job(arguments)
    flows = load_flows(arguments.source, job.node)
    results = None
    if arguments.left:
        with backend(REFERENCE).open(job) as session:
            results = list(session.replay(flows))
    count = export_capture(Path(arguments.output), flows, results)
    print(f"{arguments.output}: {counted(count, 'packet')} of {counted(len(flows), 'flow')}")
    return 0
