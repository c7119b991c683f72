"""``nfparity assess``: the differences between kube-proxy's iptables and nftables modes, with packets."""

from __future__ import annotations

import argparse
import sys
from ipaddress import ip_network
from typing import TYPE_CHECKING, TextIO

from backends.model.variant import Variant
from harness.diff.sampling import MISS
from harness.status import DIFFERENCES, DONE, NOT_TESTED
from nfparity.assess.catalogue import Version
from nfparity.cli.options import add_format, add_miss, add_no_times, add_node, add_quiet
from nfparity.cli.reports import add_reports, check_reports, write_reports
from translate.dataclass import replace
from translate.errors import InputError
from translate.ir import Family, Interval

if TYPE_CHECKING:
    from nfparity.assess.accepted import Accepted
    from nfparity.assess.snapshots import AssessOptions
    from nfparity.assess.summary import Summary

_EXAMPLE = """\
example:
  nfparity assess worker.tar.gz
  nfparity assess rules.iptables-save --node node.json --against kube-proxy.nft
  nfparity assess worker.tar.gz --format html >report.html
  nfparity assess snapshots/ --workers 4

For every known difference, packets that would show it are sent through the node's iptables rules, and
through kube-proxy's nftables rules together with the other iptables rules of the node. A corpus generated
from the rules looks for unknown differences. Only differences that packets show are reported.

Several snapshots, or a folder of them, are assessed in several processes (dask.distributed). Each node is a
line on standard error when it is done; one summary groups the nodes with the same findings. A snapshot that
cannot be assessed does not end the run. Workers read the snapshots themselves: those of --scheduler need them
under the same path, nfparity of this version, and root.

The same input gives the same report: flows with random outcomes are sent until every outcome has been seen.
If services differ only in addresses, ports and names, two of them are tested in this way. To each of the
others, the flows for a known difference are sent once from one of the clients, and must have the same
outcomes. With --against, every service is tested in full.

exit status: 0 nothing changes, 1 findings, 2 bad input, 3 the machine lacks something, 4 nothing changes, but
not everything was tested; of several snapshots the highest
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "snapshots",
        metavar="SNAPSHOT",
        nargs="+",
        help="a snapshot (a folder or a .tar.gz of nfparity capture), a file of iptables-save output, "
        "or a folder of snapshots",
    )
    parser.add_argument(
        "--against",
        metavar="FILE",
        help="the nftables rules to compare with: output of nft list ruleset (text or JSON), a file for "
        "nft -f, or a snapshot of a node that has them; default: generated as kube-proxy would",
    )
    parser.add_argument(
        "--kubernetes",
        metavar="1.N",
        type=_version,
        help="the version of the new kube-proxy; default: the newest one known, or any with --against",
    )
    parser.add_argument(
        "--family",
        type=Family,
        choices=tuple(Family),
        metavar="ip|ip6",
        help="only this family; default: all in the snapshot",
    )
    parser.add_argument(
        "--variant",
        type=Variant,
        choices=tuple(Variant),
        metavar="legacy|nft",
        help="the rules of iptables-legacy or of iptables-nft; default: the variant that has rules",
    )
    add_node(parser)
    parser.add_argument(
        "--objects", metavar="FILE", help="the API objects (kubectl get -o json), for names and ranges"
    )
    parser.add_argument(
        "--service-range",
        metavar="CIDR",
        type=_interval,
        action="append",
        default=[],
        help="the service range of a family; default: the smallest prefix with every ClusterIP",
    )
    parser.add_argument(
        "--known-only",
        action="store_true",
        help="look for the known differences only: generate no corpus from the rules",
    )
    add_miss(parser)
    parser.add_argument(
        "--only",
        metavar="ID",
        action="append",
        default=[],
        help="only this flow, or only this difference, such as K05 (may be repeated)",
    )
    group = parser.add_argument_group("accepted findings and the exit status (one snapshot)")
    group.add_argument(
        "--baseline",
        metavar="FILE",
        help="an earlier report (--format json); its findings are not reported again",
    )
    group.add_argument(
        "--accept",
        metavar="ID[/SERVICE]",
        action="append",
        default=[],
        help="do not report this difference, such as K05 or K05/shop/web:http; may be repeated",
    )
    group.add_argument(
        "--fail-on",
        choices=("breaks", "changes", "any"),
        help="exit status 1 only for findings that break traffic, or that change it; default: any",
    )
    add_format(parser, "text", "json", "sarif", "junit", "html")
    add_reports(parser)
    add_no_times(parser)
    add_quiet(parser)
    group = parser.add_argument_group("several snapshots")
    place = group.add_mutually_exclusive_group()
    place.add_argument(
        "--workers",
        metavar="N",
        type=_count,
        help="number of processes on this machine; default: one for each processor",
    )
    place.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="use the workers of this dask scheduler, such as tcp://host:8786",
    )


def _version(text: str) -> Version:
    major, _, minor = text.removeprefix("v").partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Kubernetes version such as 1.30")
    return int(major), int(minor)


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes")
    return int(text)


def _interval(text: str) -> tuple[Family, Interval]:
    try:
        network = ip_network(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None
    family = Family.IP if network.version == 4 else Family.IP6
    return family, Interval.prefix(int(network.network_address), network.prefixlen, family.bits)


def run(arguments: argparse.Namespace) -> int:
    """Print the report; return 0 if nothing changes, 1 for findings, 4 if not everything was tested."""
    from nfparity.assess.fleet.paths import is_collection

    check_reports(arguments.reports)
    if len(arguments.snapshots) > 1 or is_collection(arguments.snapshots[0]):
        return _run_fleet(arguments)
    for option in ("workers", "scheduler"):
        if getattr(arguments, option) is not None:
            raise InputError(f"--{option} needs several snapshots or a folder of them")
    summary = _accepted(arguments).removed_from(_summary(arguments, arguments.snapshots[0]))
    write_reports(
        arguments,
        lambda stream: _print(summary, stream),
        lambda form: _rendered(summary, form, times=not arguments.no_times),
    )
    if _fails(summary, arguments.fail_on):
        return DIFFERENCES
    return NOT_TESTED if summary.untested else DONE


def _print(summary: Summary, stream: TextIO) -> None:
    from nfparity.report.assessment import print_assessment

    print_assessment(summary, stream)


def _rendered(summary: Summary, form: str, *, times: bool) -> str:
    """Return the report on one snapshot as JSON, SARIF, JUnit or HTML."""
    from nfparity.cli.main import VERSION

    match form:
        case "json":
            from nfparity.report.assessjson import assessment_json

            return assessment_json(summary)
        case "sarif":
            from nfparity.report.assesssarif import assessment_sarif

            return assessment_sarif(summary, version=VERSION)
        case "junit":
            from nfparity.report.assessjunit import assessment_junit

            return assessment_junit(summary, times=times)
        case _:
            from nfparity.report.pages.assessment import assessment_page

            return assessment_page(summary, version=VERSION)


def _accepted(arguments: argparse.Namespace) -> Accepted:
    from harness.files.userfiles import read_text
    from nfparity.assess.accepted import Accepted

    accepted = Accepted.of_names(arguments.accept)
    if arguments.baseline is None:
        return accepted
    return accepted.joined(Accepted.of_report(read_text(arguments.baseline), name=arguments.baseline))


def _fails(summary: Summary, threshold: str | None) -> bool:
    """Return whether a finding is as grave as ``--fail-on``."""
    from nfparity.assess.severity import Severity, severities

    if threshold in (None, "any"):
        return summary.changes
    grave = {Severity.BREAKS} if threshold == "breaks" else {Severity.BREAKS, Severity.CHANGES}
    return any(severity in grave for each in summary.assessments for severity, _ in severities(each))


def _run_fleet(arguments: argparse.Namespace) -> int:
    from harness.report.progress import progress
    from nfparity.assess.fleet.daskpool import dask_pool
    from nfparity.assess.fleet.gathering import gather_answers
    from nfparity.assess.fleet.grouping import fleet_of
    from nfparity.assess.fleet.node import Answer
    from nfparity.assess.fleet.paths import snapshot_paths
    from nfparity.assess.snapshots import check_shared
    from nfparity.report.fleet import answer_line, fleet_json, print_fleet

    for option in ("baseline", "accept", "fail_on"):
        if getattr(arguments, option):
            raise InputError(f"--{option.replace('_', '-')} is for one snapshot")
    if arguments.node is not None:
        raise InputError("--node describes one node, and several snapshots were given")
    requested = [(f"--format {arguments.format}", arguments.format)]
    requested += [(f"--report {path}", form) for path, form in arguments.reports]
    for option, form in requested:
        if form in ("sarif", "junit"):
            raise InputError(f"{option} is for one snapshot; use json or html for several")
    paths = snapshot_paths(arguments.snapshots)
    options = _options(arguments)
    check_shared(options)
    with progress(sys.stderr, unit="nodes") as report:

        def tell(answer: Answer, done: int, again: bool) -> None:
            print(answer_line(answer, again=again), file=sys.stderr)
            report("assessed", done, len(paths))

        with dask_pool(options, workers=arguments.workers, scheduler=arguments.scheduler) as pool:
            answers = gather_answers(pool, paths, tell)
    fleet = fleet_of(answers, options.words)

    def rendered(form: str) -> str:
        if form == "json":
            return fleet_json(fleet)
        from nfparity.cli.main import VERSION
        from nfparity.report.pages.fleet import fleet_page

        return fleet_page(fleet, version=VERSION)

    write_reports(arguments, lambda stream: print_fleet(fleet, stream), rendered)
    return fleet.status


def _summary(arguments: argparse.Namespace, path: str) -> Summary:
    from harness.report.progress import progress
    from nfparity.assess.snapshots import assess_snapshot
    from nfparity.inputs.batches import load_node
    from nfparity.snapshot import load_snapshot

    snapshot = load_snapshot(path)
    options = _options(arguments)
    if arguments.node is not None:
        ruleset = snapshot.ruleset(options.family or snapshot.families[0], options.variant)
        options = replace(options, node=load_node(arguments.node, ruleset))
    with progress(sys.stderr) as report:
        return assess_snapshot(snapshot, options, progress=report)


def _options(arguments: argparse.Namespace) -> AssessOptions:
    from harness.files.userfiles import read_text
    from nfparity.assess.snapshots import AssessOptions

    ranges = dict(arguments.service_range)
    if len(ranges) < len(arguments.service_range):
        raise InputError("--service-range: given twice for one family")
    return AssessOptions(
        version=arguments.kubernetes,
        against=arguments.against,
        listing=None if arguments.against is None else _ruleset_in(arguments.against),
        family=arguments.family,
        variant=arguments.variant,
        objects=None if arguments.objects is None else read_text(arguments.objects),
        objects_name=arguments.objects or "",
        service_ranges=ranges,
        corpus=not arguments.known_only,
        only=tuple(arguments.only),
        words=_words(arguments),
        miss=arguments.miss,
    )


def _ruleset_in(path: str) -> str:
    """Return the nftables ruleset in a file or in a snapshot."""
    from harness.files.userfiles import read_text
    from nfparity.snapshot import is_snapshot, load_snapshot

    if not is_snapshot(path):
        return read_text(path)
    text = load_snapshot(path).nft
    if text is None:
        raise InputError(f"{path}: this snapshot contains no nftables ruleset (nft.json)")
    return text


def _words(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return the command-line words needed to reproduce one example."""
    from nfparity.assess.node.facts import range_text

    words: list[str] = []
    named = (
        ("--against", arguments.against),
        ("--kubernetes", None if arguments.kubernetes is None else ".".join(map(str, arguments.kubernetes))),
        ("--family", arguments.family),
        ("--variant", arguments.variant),
        ("--node", arguments.node),
        ("--objects", arguments.objects),
        ("--miss", None if arguments.miss == MISS else f"{arguments.miss:g}"),
    )
    for option, value in named:
        if value is not None:
            words += [option, str(value)]
    for family, interval in arguments.service_range:
        words += ["--service-range", range_text(interval, family)]
    return tuple(words)
