"""``nfparity assess``: what will change when kube-proxy goes to its nftables mode, shown with packets."""

from __future__ import annotations

import argparse
import sys
from ipaddress import ip_network
from typing import TYPE_CHECKING

from backends.model.node import Node
from backends.model.variant import Variant
from harness.diff.sampling import MISS
from harness.status import DIFFERENCES, DONE, NOT_TESTED
from nfparity.assess.catalogue import Version
from nfparity.cli.options import add_format, add_miss, add_no_times, add_node, add_only
from translate.errors import InputError
from translate.ir import Family, Interval

if TYPE_CHECKING:
    from nfparity.assess.summary import Summary

_EXAMPLE = """\
example:
  nfparity assess worker.tar.gz
  nfparity assess rules.iptables-save --node node.json --against kube-proxy.nft
  nfparity assess snapshots/ --workers 4

Every known difference is looked for with packets of its own, and every other one with a corpus made from
the rules. Packets are sent through the rules as they are, by iptables-legacy, and through kube-proxy's
nftables rules beside what stays of the others; only what they show is reported.

Several snapshots, or a folder of them, are assessed in several processes (dask.distributed). What comes of
each is a line on standard error, and one summary puts nodes with the same findings together. A snapshot that
cannot be assessed does not end the run. Workers read the snapshots themselves: those of --scheduler need them
under the same path, nfparity of this version, and root.

The same input gives the same report: flows that chance decides are sent until every way has been seen.

exit status: 0 nothing changes, 1 findings, 2 bad input, 3 the machine lacks something, 4 nothing changes, but
not all was tested; of several snapshots the highest of any
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "snapshots",
        metavar="SNAPSHOT",
        nargs="+",
        help="a folder or a .tar.gz (nfparity capture), or a file with rules as iptables-save prints them; "
        "or a folder of snapshots",
    )
    parser.add_argument(
        "--against",
        metavar="FILE",
        help="the nftables rules that come: nft list ruleset, its JSON, a file for nft -f, or a snapshot of "
        "a node that has them; default: made as kube-proxy would make them",
    )
    parser.add_argument(
        "--kubernetes",
        metavar="1.N",
        type=_version,
        help="the version of the kube-proxy that comes; default: the newest one known, or any with --against",
    )
    parser.add_argument(
        "--family", type=Family, choices=tuple(Family), metavar="ip|ip6", help="default: all that it has"
    )
    parser.add_argument(
        "--variant",
        type=Variant,
        choices=tuple(Variant),
        metavar="legacy|nft",
        help="the rules of iptables-legacy or of iptables-nft; default: whichever has rules",
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
        help="the service range of a family; default: the smallest one with every ClusterIP",
    )
    parser.add_argument(
        "--known-only",
        action="store_true",
        help="only the known differences: no corpus is made from the rules",
    )
    add_miss(parser)
    add_only(parser)
    add_format(parser, "text", "json", "sarif", "junit")
    add_no_times(parser)
    group = parser.add_argument_group("several snapshots")
    place = group.add_mutually_exclusive_group()
    place.add_argument(
        "--workers",
        metavar="N",
        type=_count,
        help="so many processes on this machine; default: one for each processor",
    )
    place.add_argument(
        "--scheduler", metavar="ADDRESS", help="the workers of this dask scheduler, as tcp://host:8786"
    )


def _version(text: str) -> Version:
    major, _, minor = text.removeprefix("v").partition(".")
    if not (major.isdigit() and minor.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no Kubernetes version such as 1.30")
    return int(major), int(minor)


def _count(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes")
    return int(text)


def _interval(text: str) -> tuple[Family, Interval]:
    try:
        network = ip_network(text)
    except ValueError as e:
        raise argparse.ArgumentTypeError(str(e)) from None
    family = Family.IP if network.version == 4 else Family.IP6
    return family, Interval.prefix(int(network.network_address), network.prefixlen, family.bits)


def run(arguments: argparse.Namespace) -> int:
    """Print the report; 0 when nothing changes, 1 for findings, 4 where not all was tested."""
    from nfparity.assess.fleet.places import is_collection

    if len(arguments.snapshots) > 1 or is_collection(arguments.snapshots[0]):
        return _run_fleet(arguments)
    for option in ("workers", "scheduler"):
        if getattr(arguments, option) is not None:
            raise InputError(f"--{option} is for several snapshots, or a folder of them")
    summary = _summary(arguments, arguments.snapshots[0])
    match arguments.format:
        case "json":
            from nfparity.report.assessjson import assessment_json

            sys.stdout.write(assessment_json(summary))
        case "sarif":
            from nfparity.cli.main import VERSION
            from nfparity.report.assesssarif import assessment_sarif

            sys.stdout.write(assessment_sarif(summary, version=VERSION))
        case "junit":
            from nfparity.report.assessjunit import assessment_junit

            sys.stdout.write(assessment_junit(summary, times=not arguments.no_times))
        case _:
            from nfparity.report.assessment import print_assessment

            print_assessment(summary, sys.stdout)
    if summary.changes:
        return DIFFERENCES
    return NOT_TESTED if summary.untested else DONE


def _run_fleet(arguments: argparse.Namespace) -> int:
    from harness.files.userfiles import read_text
    from harness.report.progress import progress
    from nfparity.assess.fleet.daskpool import dask_pool
    from nfparity.assess.fleet.gathering import gather_answers
    from nfparity.assess.fleet.grouping import fleet_of
    from nfparity.assess.fleet.node import Answer
    from nfparity.assess.fleet.order import Order
    from nfparity.assess.fleet.places import snapshot_paths
    from nfparity.assess.snapshots import check_shared
    from nfparity.report.fleet import answer_line, fleet_json, print_fleet

    if arguments.node is not None:
        raise InputError("--node is one node's, and these are several snapshots")
    if arguments.format in ("sarif", "junit"):
        raise InputError(f"--format {arguments.format} is about one snapshot; give one, or take json")
    paths = snapshot_paths(arguments.snapshots)
    order = Order(
        version=arguments.kubernetes,
        against=arguments.against,
        given=None if arguments.against is None else _ruleset_in(arguments.against),
        family=arguments.family,
        variant=arguments.variant,
        objects=None if arguments.objects is None else read_text(arguments.objects),
        objects_name=arguments.objects or "",
        service_ranges=_ranges(arguments),
        corpus=not arguments.known_only,
        only=tuple(arguments.only),
        options=_options(arguments),
        miss=arguments.miss,
    )
    check_shared(order.against, order.given, order.objects, order.objects_name)
    with progress(sys.stderr) as told:

        def tell(answer: Answer, done: int, again: bool) -> None:
            print(answer_line(answer, again=again), file=sys.stderr)
            told("nodes", done, len(paths))

        with dask_pool(order, workers=arguments.workers, scheduler=arguments.scheduler) as pool:
            answers = gather_answers(pool, paths, tell)
    fleet = fleet_of(answers, order.options)
    if arguments.format == "json":
        sys.stdout.write(fleet_json(fleet))
    else:
        print_fleet(fleet, sys.stdout)
    return fleet.status


def _ranges(arguments: argparse.Namespace) -> dict[Family, Interval]:
    ranges = dict(arguments.service_range)
    if len(ranges) < len(arguments.service_range):
        raise InputError("--service-range: more than one of a family")
    return ranges


def _summary(arguments: argparse.Namespace, path: str) -> Summary:
    from harness.files.userfiles import read_text
    from harness.report.progress import progress
    from nfparity.assess.snapshots import Question, assess_snapshot
    from nfparity.inputs.batches import load_node
    from nfparity.snapshot import load_snapshot

    snapshot = load_snapshot(path)
    node: Node | None = None
    if arguments.node is not None:
        node = load_node(
            arguments.node, snapshot.ruleset(arguments.family or snapshot.families[0], arguments.variant)
        )
    question = Question(
        snapshot=snapshot,
        version=arguments.kubernetes,
        against=arguments.against,
        given=None if arguments.against is None else _ruleset_in(arguments.against),
        node=node,
        family=arguments.family,
        variant=arguments.variant,
        objects=snapshot.objects if arguments.objects is None else read_text(arguments.objects),
        objects_name=arguments.objects or f"{snapshot.name}/objects.json",
        service_ranges=_ranges(arguments),
        corpus=not arguments.known_only,
        only=tuple(arguments.only),
        options=_options(arguments),
        miss=arguments.miss,
    )
    with progress(sys.stderr) as told:
        return assess_snapshot(question, progress=told)


def _ruleset_in(path: str) -> str:
    """The nftables ruleset of a file, or of a snapshot of a node that has changed its mode."""
    from harness.files.userfiles import read_text
    from nfparity.snapshot import is_snapshot, load_snapshot

    if not is_snapshot(path):
        return read_text(path)
    text = load_snapshot(path).nft
    if text is None:
        raise InputError(f"{path}: no nftables ruleset in this snapshot (it would be nft.json)")
    return text


def _options(arguments: argparse.Namespace) -> tuple[str, ...]:
    """The words that a repetition of one witness needs."""
    from nfparity.assess.facts import range_text

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
