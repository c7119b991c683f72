"""``nfparity migrate``: replace this node's iptables rules with their translation, and roll back."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from backends.model.node import node_from_json
from harness.counted import counted
from harness.files.userfiles import STDIN_NAME, read_text, write_text
from nfparity.cli.migratehelp import APPLY, EXAMPLE, LOAD, PLAN, ROLLBACK, VERIFY
from nfparity.cli.options import add_format, add_level, add_quiet, print_assumptions, print_notes
from translate.errors import InputError, MachineError, ParseError, UnsupportedError
from translate.ir import Family, TableName

if TYPE_CHECKING:
    from nfparity.migrate.migration import Migration
    from nfparity.migrate.planning.plan import MigrationPlan
    from nfparity.migrate.planning.planning import Planned
    from nfparity.migrate.rollback import RolledBack
    from nfparity.migrate.state.record import Record
    from nfparity.migrate.verification import State

_LEVEL: Final = 2
"""The default optimisation (:func:`nfparity.cli.options.add_level`)."""
_LONGEST: Final = 86400.0
_SHORTEST: Final = 120.0
"""The default time to confirm, in seconds."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(title="actions", dest="action", metavar="ACTION", required=True)

    def add(name: str, summary: str, description: str, epilog: str, *formats: str) -> argparse.ArgumentParser:
        action = actions.add_parser(
            name,
            help=summary,
            description=description,
            epilog=epilog,
            formatter_class=parser.formatter_class,
        )
        add_format(action, "text", "json", *formats)
        return action

    plan = add(
        "plan",
        "make a plan, and test it with packets",
        "Make a plan from the live rules, and test it with packets.",
        PLAN,
        "html",
    )
    plan.add_argument("-o", dest="output", metavar="PLAN", help="write the plan to this file")
    plan.add_argument(
        "--family",
        type=Family,
        choices=tuple(Family),
        metavar="ip|ip6",
        help="only this family; default: those that have rules",
    )
    plan.add_argument(
        "--variant",
        choices=("legacy", "nft"),
        help="replace the rules of iptables-legacy or of iptables-nft; needed where both hold rules",
    )
    plan.add_argument(
        "--keep-table",
        metavar="TABLE",
        action="append",
        default=[],
        choices=tuple(TableName),
        help="leave this table in iptables, unchanged (may be repeated)",
    )
    plan.add_argument(
        "--node", metavar="FILE", help="the node's interfaces and routes (JSON); default: this node's"
    )
    add_level(plan)
    plan.add_argument("--seed", type=int, default=0, help="random seed of the packets (default: 0)")
    add_quiet(plan)
    apply = add("apply", "load the translation and empty the old tables", "Apply a plan.", APPLY)
    apply.add_argument("plan", metavar="PLAN", help="a plan of nfparity migrate plan")
    apply.add_argument(
        "--confirm-within",
        metavar="SECONDS",
        type=_seconds,
        help="time to wait for verify --confirm before rolling back; default: 120, or twice the time of "
        "the plan's packets",
    )
    verify = add(
        "verify",
        "compare the loaded table with the applied one",
        "Compare the loaded table with the one that apply loaded.",
        VERIFY,
    )
    add_quiet(verify)
    verify.add_argument("--live", action="store_true", help="compare the loaded table only; send no packets")
    verify.add_argument("--confirm", action="store_true", help="stop the timer of apply if nothing differs")
    verify.add_argument(
        "--at-boot",
        action="store_true",
        help="with --confirm: install and enable a systemd unit that loads the translation at boot",
    )
    load = add(
        "load",
        "load the confirmed translation after a reboot",
        "Load the confirmed translation after a reboot.",
        LOAD,
    )
    rollback = add(
        "rollback", "restore the rules from before apply", "Restore the rules from before apply.", ROLLBACK
    )
    status = add(
        "status",
        "the state of a migration",
        "Print the state of the migration.",
        "example:\n  nfparity migrate status\n",
    )
    for action in (apply, verify, load, rollback, status):
        _add_state(action)


def _add_state(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state",
        metavar="DIR",
        type=Path,
        help="the directory of the saved state; default: /var/lib/nfparity/migrate/NAMESPACE",
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= _LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to {_LONGEST:.0f}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Run the selected action and return its exit status."""
    actions = {
        "plan": _plan,
        "apply": _apply,
        "verify": _verify,
        "load": _load,
        "rollback": _rollback,
        "status": _status,
    }
    return actions[arguments.action](arguments)


def _plan(arguments: argparse.Namespace) -> int:
    from backends.model.variant import Variant
    from harness.report.progress import progress
    from nfparity.livenode import live_node
    from nfparity.migrate.planning.planning import choose_variant, make_plan

    variant = Variant(arguments.variant) if arguments.variant else None
    families = (arguments.family,) if arguments.family else tuple(Family)
    left = tuple(dict.fromkeys(arguments.keep_table))
    chosen = {family: choose_variant(family, variant, left) for family in families}
    variants = {family: variant for family, variant in chosen.items() if variant is not None}
    if not variants:
        but = f" but those in {', '.join(left)}" if left else ""
        raise InputError(f"no iptables rules{but} are loaded in this network namespace")
    node = (
        live_node()
        if arguments.node is None
        else node_from_json(read_text(arguments.node), name=arguments.node)
    )
    print_assumptions(node)
    try:
        with progress(sys.stderr) as report_progress:
            planned = make_plan(
                variants,
                node,
                level=arguments.level,
                seed=arguments.seed,
                say=lambda text: print(f"nfparity: {text}", file=sys.stderr),
                progress=report_progress,
                left=left,
            )
    except (ParseError, UnsupportedError):
        print("nfparity: --keep-table TABLE leaves the table of such rules in iptables", file=sys.stderr)
        raise
    for family in planned.families:
        print_notes(family.notes)
    _show_plan(arguments, planned)
    if not planned.parity:
        return 1
    if arguments.output is not None:
        write_text(arguments.output, planned.plan.text())
    return 0


def _apply(arguments: argparse.Namespace) -> int:
    plan = _read_plan(arguments.plan)
    migration = _migration(arguments)
    _say_undone(migration.settle().undone)
    within = arguments.confirm_within
    if within is None:
        within = max(_SHORTEST, 2 * plan.seconds)
    record = migration.apply(plan, within)
    _show(
        arguments,
        {**_record_data(record, migration), "confirm within": within},
        [
            "applied: only the translation is loaded",
            *_carried_lines(migration),
            f"the plan is rolled back unless nfparity migrate verify --confirm is run within {within:.0f} s",
            f"(verify sends the plan's packets again, which took {plan.seconds:.0f} s; --live skips them)",
        ],
    )
    return 0


def _carried_lines(migration: Migration) -> list[str]:
    lists = sum(carried.lists for carried in migration.carried)
    addresses = counted(sum(carried.addresses for carried in migration.carried), "address", "addresses")
    where = counted(lists, "list of -m recent", "lists of -m recent")
    return [f"{addresses} of {where} carried over"] if lists else []


def _verify(arguments: argparse.Namespace) -> int:
    from harness.report.progress import progress
    from nfparity.migrate.state.record import Phase
    from nfparity.migrate.verification import State, look, send_packets
    from nfparity.report.migration import live_data, live_lines

    if arguments.at_boot and not arguments.confirm:
        raise InputError("--at-boot needs --confirm: only a confirmed plan is loaded at boot")
    migration = _migration(arguments)
    verification = look(migration)
    data = live_data(verification)
    lines = live_lines(verification)
    good = verification.state is State.SAME
    if good and not arguments.live:
        with progress(sys.stderr) as report_progress:
            reports = send_packets(verification, report_progress)
        for family, report in reports.items():
            differing = sum(backend.differing for backend in report.backends)
            data["families"][family.value]["packets"] = {"flows": report.flows, "different": differing}
            flows = counted(report.flows, "flow")
            lines.append(f"{family.value}: {flows} through a copy of this node: {differing} different")
            good = good and report.parity
    if arguments.confirm and good:
        migration.confirm()
        lines.append("confirmed: the timer is stopped")
        lines += _boot_lines(arguments, migration)
    elif arguments.confirm:
        lines.append("not confirmed")
    data["confirmed"] = bool(arguments.confirm and good) or verification.record.phase is Phase.CONFIRMED
    _show(arguments, data, lines)
    return _status_of(verification.state) or (0 if good else 1)


def _boot_lines(arguments: argparse.Namespace, migration: Migration) -> list[str]:
    """Enable the unit if requested; return lines about the next boot."""
    from nfparity.migrate.bootunit import is_enabled

    if arguments.at_boot:
        return [f"loaded at boot by {migration.load_at_boot()}; nfparity migrate rollback removes it"]
    if migration.place.units is None or is_enabled(migration.place.units):
        return []
    return [
        "not loaded at boot: a reboot loses it; to keep it, run",
        "  nfparity migrate verify --live --confirm --at-boot",
    ]


def _load(arguments: argparse.Namespace) -> int:
    loaded = _migration(arguments).load()
    lines = ["the confirmed translation is loaded" if loaded.new else "the translation is loaded already"]
    if loaded.emptied:
        tables = ", ".join(f"{family} {table}" for family, table in loaded.emptied)
        lines.append(f"another program had loaded the old rules again; these tables are emptied: {tables}")
    _show(arguments, {"loaded": loaded.new, "emptied": [list(table) for table in loaded.emptied]}, lines)
    return 0


def _rollback(arguments: argparse.Namespace) -> int:
    from nfparity.report.migration import undone_data, undone_lines

    done = _migration(arguments).rollback()
    if done is None:
        _show(arguments, {"rolled back": False}, ["nothing was applied here, or it has been rolled back"])
        return 0
    _show(arguments, {"rolled back": True, **undone_data(done)}, undone_lines(done))
    return 0


def _status(arguments: argparse.Namespace) -> int:
    migration = _migration(arguments)
    settled = migration.settle()
    _say_undone(settled.undone)
    migration.insist_on_record(settled.record)
    if settled.record is None:
        raise MachineError("no plan has been applied in this network namespace (nfparity migrate apply)")
    data = _record_data(settled.record, migration)
    _show(arguments, data, [f"{name:12} {value}" for name, value in data.items()])
    return 0


def _read_plan(path: str) -> MigrationPlan:
    from nfparity.migrate.planning.plan import MigrationPlan

    return MigrationPlan.from_text(read_text(path), name=STDIN_NAME if path == "-" else path)


def _migration(arguments: argparse.Namespace) -> Migration:
    from nfparity.migrate.migration import Migration
    from nfparity.migrate.state.place import here

    return Migration(here(arguments.state))


def _show_plan(arguments: argparse.Namespace, planned: Planned) -> None:
    if arguments.format == "html":
        from nfparity.cli.main import VERSION
        from nfparity.report.pages.migration import migration_page

        command = _plan_command(arguments)
        sys.stdout.write(migration_page(planned, command=command, output=arguments.output, version=VERSION))
        return
    from nfparity.report.migration import plan_data, plan_lines, static_lines

    data = {family.plan.family.value: plan_data(family) for family in planned.families}
    static = list(static_lines(planned.families))
    lines = [line for family in planned.families for line in plan_lines(family)] + static
    if not planned.parity:
        lines.append("no plan: packets are treated differently")
    elif arguments.output is not None:
        lines.append(f"plan written to {arguments.output}; nothing is changed yet")
    else:
        lines.append("-o PLAN writes the plan; nothing is changed yet")
    shown = {"families": data, "digest": planned.plan.digest, "parity": planned.parity, "static": static}
    _show(arguments, shown, lines)


def _plan_command(arguments: argparse.Namespace) -> str:
    """Return the command that makes this plan."""
    words = ["nfparity", "migrate", "plan"]
    for option, value in (
        ("--family", arguments.family and arguments.family.value),
        ("--variant", arguments.variant),
        *(("--keep-table", table) for table in arguments.keep_table),
        ("--node", arguments.node),
        ("--seed", arguments.seed or None),
        ("-O", None if arguments.level == _LEVEL else arguments.level),
        ("-o", arguments.output),
    ):
        if value is not None:
            words += [option, str(value)]
    return shlex.join(words)


def _record_data(record: Record, migration: Migration) -> dict[str, Any]:
    from nfparity.migrate.deadman import now
    from nfparity.migrate.state.record import Phase

    data: dict[str, Any] = {"state": record.phase.value, "since": record.since, "plan": record.plan}
    if migration.is_forgotten(record):
        data["forgotten"] = "the kernel has forgotten it (a reboot?)"
    elif record.phase is Phase.APPLIED:
        data["seconds"] = round(max(0.0, record.deadline - now()), 1)
    if record.removed:
        data["taken out"] = list(record.removed)
    return data


def _status_of(state: State) -> int:
    from nfparity.migrate.verification import State

    return {State.SAME: 0, State.DRIFT: 1, State.NOT_THERE: 3}[state]


def _say_undone(done: RolledBack | None) -> None:
    if done is not None:
        from nfparity.report.migration import undone_lines

        print("nfparity: an earlier apply was interrupted, or never confirmed", file=sys.stderr)
        for line in undone_lines(done):
            print(f"nfparity: {line}", file=sys.stderr)


def _show(arguments: argparse.Namespace, data: dict[str, Any], lines: Iterable[str]) -> None:
    if arguments.format == "json":
        print(json.dumps(data, indent=2))
    else:
        for line in lines:
            print(line)
