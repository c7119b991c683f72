"""``nfparity watch``: changes of this node's rules since a snapshot."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.counted import counted
from harness.files.errors import MACHINE, CaptureError
from harness.files.userfiles import write_text
from harness.report.terminal import plain
from nfparity.cli.options import add_format, add_output
from nfparity.snapshot.archive import is_snapshot, read_files
from translate.errors import InputError, MachineError

if TYPE_CHECKING:
    from nfparity.watch.table_state import TableState

_EXAMPLE = """\
example:
  nfparity capture -o node.tar.gz
  nfparity watch node.tar.gz --ignore '*: chain KUBE-*'
  nfparity watch node.tar.gz --every 60 --format openmetrics -o /var/lib/node_exporter/nfparity.prom

Rules of iptables (both variants), nftables tables of any owner and ipsets are compared, without counters,
comments and elements that packets add. A pattern of --ignore is for a table ("nft ip kube-proxy") or for a
place in it ("iptables-nft ip nat: chain KUBE-SVC-*"), as the report prints them.

exit status: 0 if nothing has changed, 1 if something has
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "snapshot", metavar="SNAPSHOT", help="the state to compare with: a folder or a .tar.gz"
    )
    parser.add_argument("--now", metavar="SNAPSHOT", help="compare this snapshot instead of the node itself")
    parser.add_argument(
        "--ignore",
        metavar="PATTERN",
        action="append",
        default=[],
        help="leave out tables or places (may be repeated)",
    )
    parser.add_argument(
        "--every",
        metavar="SECONDS",
        type=_seconds,
        help="compare again after so many seconds, until interrupted",
    )
    add_format(parser, "text", "json", "openmetrics")
    add_output(parser)


def _seconds(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 86400:
        raise ValueError(text)
    return value


def run(arguments: argparse.Namespace) -> int:
    """Compare the node with the snapshot once, or repeatedly."""
    from nfparity.watch import states_of

    if arguments.now is not None and arguments.every is not None:
        raise InputError("--every compares with the node itself, and cannot be given with --now")
    files = _files(arguments.snapshot)
    before = states_of(files, name=arguments.snapshot)
    while True:
        if arguments.now is None:
            later = states_of(_live(files), name="this node")
        else:
            later = states_of(_files(arguments.now), name=arguments.now)
        text, changed = _report(arguments, before, later)
        write_text(arguments.output, text)
        if arguments.every is None:
            return 1 if changed else 0
        time.sleep(arguments.every)


def _report(
    arguments: argparse.Namespace, before: Mapping[str, TableState], later: Mapping[str, TableState]
) -> tuple[str, bool]:
    """Return the report, and whether something has changed."""
    from nfparity.watch import compare_states, metrics_text

    tables = compare_states(before, later, ignored=arguments.ignore)
    changed = any(table.drift for table in tables)
    match arguments.format:
        case "openmetrics":
            return metrics_text(tables, now=time.time()), changed
        case "json":
            data = {table.table: [change.data() for change in table.drift] for table in tables}
            return json.dumps(data, indent=2) + "\n", changed
        case _:
            lines = [f"{t.table}: {plain(change.line())}" for t in tables for change in t.drift]
            count = sum(not table.drift for table in tables)
            total = counted(len(lines), "difference")
            lines.append(f"{total}; {count} of {len(tables)} tables and ipsets are unchanged")
            return "".join(f"{line}\n" for line in lines), changed


def _files(path: str) -> Mapping[str, bytes]:
    if not is_snapshot(path):
        raise InputError(f"{path}: expected a snapshot (nfparity capture): a folder or a .tar.gz")
    return read_files(path)


def _live(before: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files of a snapshot of this node.

    Raises MachineError if the nftables rules cannot be read but were in the files ``before``: otherwise every
    table would be reported as missing.
    """
    from nfparity.capture.node import capture_node

    try:
        files, notes = capture_node(now=time.time())
    except CaptureError as e:
        raise (MachineError if e.status == MACHINE else InputError)(str(e)) from e
    if "nft.json" in before and "nft.json" not in files:
        raise MachineError(f"the nftables rules of this node cannot be read: {'; '.join(notes)}")
    return files
