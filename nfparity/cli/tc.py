"""``nfparity tc``: load and manage the tc eBPF program of a network namespace."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from harness.files.userfiles import read_bytes
from nfparity.cli.options import (
    add_format,
    add_level,
    add_no_cache,
    add_rules,
    input_options,
    print_notes,
    print_unknown,
)
from nfparity.inputs.rules import load_large_rules
from nfparity.snapshot import is_snapshot
from translate.dataclass import replace
from translate.errors import MachineError
from translate.ir import Family

if TYPE_CHECKING:
    from backends.model.node import Node
    from nfparity.tc.place import DataplanePlace
    from nfparity.tc.record import Record
    from nfparity.tc.status import Status
    from translate.ir import Rules

_EXAMPLE = """\
example:
  nft list ruleset          # first: netfilter's own rules would also act on packets
  iptables-save > rules && nfparity tc load rules
  nfparity tc status
  nfparity tc connections
  nfparity tc unload

Acts on the network namespace that it is run in (for another one: nsenter --net=/run/netns/NAME
nfparity tc load RULES). Rules of IPv4 and of IPv6 are loaded side by side. The program stays loaded after
the command has ended; other tc filters and existing clsact qdiscs are not changed.
"""

_LOAD = """\
example:
  nfparity tc load rules.iptables-save
  nfparity tc load changed.iptables-save

If rules are already loaded, only map entries are changed where that is enough; otherwise a new program
replaces the old one, device by device, and keeps its connections. Rules that cannot be expressed exactly
are refused with their lines before anything is changed (exit status 2), also if this node has routing rules
(ip rule) and the program would look up a route without them. If a later step fails, or the command is
killed, the changes are undone.
"""


_MOST: Final = 1 << 24
"""The maximum number of connections; their tables take some gigabytes."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)
    load = actions.add_parser(
        "load",
        help="load rules, or replace the loaded ones",
        description="Load rules into the current network namespace; they stay loaded.",
        epilog=_LOAD,
        formatter_class=parser.formatter_class,
    )
    add_rules(load)
    add_level(load)
    load.add_argument(
        "--flush",
        action="store_true",
        help="drop all connections if the loaded program stores them in another form or in tables of another "
        "size; no program is loaded for a moment then",
    )
    load.add_argument(
        "--connections",
        type=_number,
        metavar="N",
        help="size of the connection table; default: 65,536, or that of the loaded program",
    )
    load.add_argument(
        "--no-fast-path",
        action="store_true",
        help="forward every packet through the kernel's network stack, "
        "so that other hooks there (nftables) see it",
    )
    add_no_cache(load)
    add_format(load, "text", "json")
    for name, summary, description in (
        ("status", "show the program and its devices", "Exit status 3 if no program is loaded."),
        ("connections", "list the connections in the format of conntrack -L", "Times are seconds."),
        (
            "refresh",
            "attach to new devices, and read addresses and routes again",
            "Run it after a change of devices, addresses, routes or sysctls.",
        ),
        ("unload", "remove everything that load has made", "Does nothing if no program is loaded."),
    ):
        action = actions.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {description}",
            epilog=f"example:\n  nfparity tc {name}\n",
            formatter_class=parser.formatter_class,
        )
        action.add_argument(
            "--family",
            type=Family,
            choices=tuple(Family),
            metavar="ip|ip6",
            help="only this family; default: those that are loaded",
        )
        add_format(action, "text", "json")


def _number(word: str) -> int:
    if not word.isdigit() or not 1 <= int(word) <= _MOST:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number from 1 to {_MOST}")
    return int(word)


def run(arguments: argparse.Namespace) -> int:
    """Run the selected action and return its exit status."""
    actions = {
        "load": _load,
        "status": _status,
        "connections": _connections,
        "refresh": _refresh,
        "unload": _unload,
    }
    return actions[arguments.action](arguments)


def _load(arguments: argparse.Namespace) -> int:
    ruleset = load_large_rules(arguments.rules, input_options(arguments))
    print_unknown(ruleset.sample)
    from nfparity import tc
    from nfparity.tc.routing import check_this_node
    from translate import bpf
    from translate.condense import lower, whole_program

    check_this_node(ruleset.sample, _live_node)
    output = bpf.emit(whole_program(lower(ruleset, level=arguments.level)))
    print_notes(output.notes)
    if arguments.connections is not None:
        output = replace(output, connections=arguments.connections)
    rules = tc.DataplaneRules(
        output=output,
        name=arguments.rules,
        digest=_digest(arguments.rules, ruleset),
        level=arguments.level,
        direct=not arguments.no_fast_path,
        sized=arguments.connections is not None,
        cached=not arguments.no_cache,
    )
    outcome = tc.Installed(ruleset.family).load(rules, flush=arguments.flush)
    data = {"family": ruleset.family.value, "outcome": outcome.value, "sha256": rules.digest}
    _print(arguments, data, [f"{ruleset.family.value}: {outcome.value}"])
    _warn_of_others(ruleset.family)
    return 0


def _live_node() -> Node:
    from nfparity.livenode import live_node

    return live_node()


def _status(arguments: argparse.Namespace) -> int:
    from nfparity.tc.status import status_of

    statuses = {place.family: status_of(place, record) for place, record in _loaded(arguments)}
    data = {family.value: status.data() for family, status in statuses.items()}
    lines = [line for family, status in statuses.items() for line in _status_lines(family, status)]
    _print(arguments, data, lines)
    return 0


def _connections(arguments: argparse.Namespace) -> int:
    from nfparity.tc.connections import connections

    for place, record in _loaded(arguments):
        for connection in connections(place, record):
            if arguments.format == "json":
                print(json.dumps({"family": place.family.value, **connection.data()}))
            else:
                print(connection.line())
    return 0


def _refresh(arguments: argparse.Namespace) -> int:
    from nfparity.tc import Installed

    added = {place.family: Installed(place.family).refresh() for place, _ in _loaded(arguments)}
    lines = [
        f"{family.value}: {'attached to ' + ', '.join(names) if names else 'no new devices'}"
        for family, names in added.items()
    ]
    _print(arguments, {family.value: list(names) for family, names in added.items()}, lines)
    return 0


def _unload(arguments: argparse.Namespace) -> int:
    from nfparity.tc import Installed

    families = (arguments.family,) if arguments.family is not None else tuple(Family)
    removed: dict[Family, bool] = {}
    troubles = []
    for family in families:
        try:
            removed[family] = Installed(family).unload()
        except MachineError as e:
            troubles.append(f"{family.value}: {e}")
    lines = [
        f"{family.value}: {'unloaded' if done else 'nothing was loaded'}" for family, done in removed.items()
    ]
    _print(arguments, {family.value: unloaded for family, unloaded in removed.items()}, lines)
    if troubles:
        raise MachineError("\n".join(troubles))
    return 0


def _loaded(arguments: argparse.Namespace) -> Iterator[tuple[DataplanePlace, Record]]:
    """Yield the loaded programs of the selected families. Raises MachineError if there are none."""
    from nfparity.tc.place import here
    from nfparity.tc.recovery import known

    families = (arguments.family,) if arguments.family is not None else tuple(Family)
    count = 0
    for family in families:
        place = here(family)
        record = known(place)
        if record is not None and record.cookie == place.cookie:
            count += 1
            yield place, record
    if not count:
        raise MachineError("no rules are loaded in this network namespace (nfparity tc load)")


def _status_lines(family: Family, status: Status) -> Iterator[str]:
    from translate.bpf import COUNTERS

    record = status.record
    state = "active" if status.open else "lets every packet pass"
    if record.phase.value != "loaded":
        state += f"; {record.phase.value} was begun"
    yield f"{family.value}: {state}"
    yield f"  rules    {record.source.rules} (-O{record.source.level}, sha256 {record.source.digest})"
    yield f"  since    {record.since}"
    yield f"  forwards {'around the stack if possible' if record.source.direct else 'through the stack'}"
    for attached in status.attached:
        yield f"  device   {attached.device}{'' if attached.complete else ': one side only'}"
        for other in attached.before:
            name = f" {other.name}" if other.name else ""
            yield f"           {other.side.word}: {other.kind}{name} runs first ({other.preference})"
    for table in status.tables:
        yield f"  table    {table.name}: {table.entries} of {table.max_entries}"
    for name, number in status.counters.items():
        if number:
            yield f"  counter  {name}: {number} ({COUNTERS[name]})"


def _warn_of_others(family: Family) -> None:
    from nfparity.tc.status import attachments

    for attached in attachments(family):
        for other in attached.before:
            print(
                f"nfparity: {attached.device}: the {other.kind} filter {other.name or other.preference} runs "
                f"first at {other.side.word}; packets that it accepts or drops bypass the rules",
                file=sys.stderr,
            )


def _digest(path: str, rules: Rules) -> str:
    if path != "-" and not is_snapshot(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    from translate.write import write_save

    return hashlib.sha256(write_save(rules.whole()).encode(errors="surrogateescape")).hexdigest()


def _print(arguments: argparse.Namespace, data: object, lines: list[str]) -> None:
    if arguments.format == "json":
        print(json.dumps(data, indent=2))
    else:
        for line in lines:
            print(line)
