"""Reports of migrations as text and JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from harness.counted import counted
from harness.diff.result import ParityReport
from harness.report.terminal import plain
from nfparity.migrate.planning.planning import PlannedFamily
from nfparity.migrate.rollback import RolledBack
from nfparity.migrate.state.tables import SavedTable
from nfparity.migrate.verification import Verification

__all__ = [
    "changed_texts",
    "kube_proxys",
    "left_tables",
    "live_data",
    "live_lines",
    "packets_text",
    "plan_data",
    "plan_lines",
    "static_lines",
    "undone_data",
    "undone_lines",
]

_SHOWN: Final = 4
"""The maximum numbers of chains per table, and of differences, in a report."""


def plan_data(family: PlannedFamily) -> dict[str, Any]:
    """Return one family's plan for JSON."""
    table, plan = family.output.structure, family.plan
    return {
        "variant": plan.variant.value,
        "digest": plan.digest,
        "loaded": {
            "table": f"{table.family} {table.name}",
            "chains": len(table.chains),
            "rules": sum(len(chain.rules) for chain in table.chains),
            "sets and maps": len(table.maps) + len(table.sets),
            "elements": sum(each.elements.count for each in table.maps),
        },
        "removed": {t.name: {"chains": len(t.chains), "rules": t.rules} for t in plan.removed},
        "kept": {t.name: {"chains": len(t.chains), "rules": t.rules} for t in left_tables(family)},
        "packets": {
            "flows": family.report.flows,
            "different": {b.name: b.differing for b in family.report.backends},
            "tried without": list(family.untried),
        },
    }


def plan_lines(family: PlannedFamily) -> Iterator[str]:
    """Yield lines about the changes of one family's plan, and the result of its packets."""
    yield f"{family.plan.family.value}: iptables-{family.plan.variant.value} to nftables"
    for label, text in changed_texts(family):
        yield f"  {label:10}{text}"
    if kube_proxys(family):
        yield "  warning   kube-proxy writes these rules: stop it first, or it writes them again"
    for difference in family.report.differences[:_SHOWN]:
        yield f"  differs   {difference.backend}: {plain(difference.flow_id)}: {difference.field}: expected "
        yield f"            {difference.expected}, observed {difference.observed}"
    yield f"  packets   {packets_text(family.report)}"
    for name in family.untried:
        yield f"  untested  with table {name}, which is kept and cannot be simulated"


def packets_text(report: ParityReport) -> str:
    """Return the number of flows and the differences of each backend; of how many flows, if not of all."""
    texts = [
        f"{b.name} {b.differing} different{'' if b.flows == report.flows else f' of {b.flows}'}"
        for b in report.backends
    ]
    return f"{counted(report.flows, 'flow')}: {', '.join(texts)}"


def changed_texts(family: PlannedFamily) -> Iterator[tuple[str, str]]:
    """Yield what is loaded, removed, kept and carried over, each as a label and a text."""
    loaded = plan_data(family)["loaded"]
    counts = ", ".join(
        counted(loaded[plural], singular, plural)
        for singular, plural in (
            ("chain", "chains"),
            ("rule", "rules"),
            ("set or map", "sets and maps"),
            ("element", "elements"),
        )
    )
    yield "loaded", f"table {loaded['table']}: {counts}"
    for table in family.plan.removed:
        names = ", ".join(table.chains[:_SHOWN]) + (", …" if len(table.chains) > _SHOWN else "")
        own = f" and {counted(len(table.chains), 'chain')} ({names})" if table.chains else ""
        yield "removed", f"{table.name}: {counted(table.rules, 'rule')}{own}"
    for table in left_tables(family):
        yield "kept", f"{table.name}: {counted(table.rules, 'rule')}, in iptables"
    lists = frozenset[str]().union(*(table.lists for table in family.plan.removed))
    if lists:
        yield "carried", f"the addresses in {counted(len(lists), 'list', 'lists')} of -m recent"


def static_lines(families: Iterable[PlannedFamily]) -> Iterator[str]:
    """Yield a warning that the translation does not follow later changes, and alternatives that do."""
    yield "static: the rules are translated as they are now; the translation does not follow later changes"
    tables = dict.fromkeys(table for family in families for table in kube_proxys(family))
    if not tables:
        return
    leave = " ".join(f"--keep-table {table}" for table in tables)
    yield "  these are kube-proxy's rules: later changes of Services and endpoints have no effect; instead,"
    yield "  - use kube-proxy's own nftables mode (nfparity assess lists its differences), or"
    yield f"  - {leave}: these tables stay in iptables, where kube-proxy can change them, or"
    yield "  - after each change: roll back, let kube-proxy write its rules, stop it, plan and apply again"


def kube_proxys(family: PlannedFamily) -> tuple[str, ...]:
    """Return the replaced tables that kube-proxy writes to."""
    chains = {"KUBE-PROXY-CANARY", "KUBE-SERVICES"}
    return tuple(table.name for table in family.plan.removed if not chains.isdisjoint(table.chains))


def left_tables(family: PlannedFamily) -> tuple[SavedTable, ...]:
    """Return the tables with rules that stay in iptables."""
    tables = family.plan.tables
    return tuple(tables[n] for n in family.plan.left if n in tables and not tables[n].is_empty)


def live_data(verification: Verification) -> dict[str, Any]:
    """Return the differences of the loaded tables from the applied ones, for JSON."""
    families = {family.family.value: family.data() for family in verification.families}
    return {"state": verification.state.value, "since": verification.record.since, "families": families}


def live_lines(verification: Verification) -> list[str]:
    """Return the differences of the loaded tables from the applied ones, one per line."""
    lines = []
    for family in verification.families:
        name = family.family.value
        if family.differences is None:
            lines.append(f"{name}: the nftables table is missing")
            continue
        lines += [f"{name}: {each.line()}" for each in family.differences]
        lines += [f"{name}: iptables has rules again in table {table}" for table in family.again]
        if not family.differences and not family.again:
            lines.append(f"{name}: no difference from what was applied")
    return lines


def undone_data(done: RolledBack) -> dict[str, Any]:
    """Return a rollback for JSON."""
    tables = [{"family": f, "table": t, "now": how.value} for f, t, how in done.tables]
    return {
        "tables": tables,
        "taken out": list(done.files),
        "taken out, as text": list(done.texts),
        "forgotten": done.forgotten,
        "complaints": list(done.complaints),
    }


def undone_lines(done: RolledBack) -> list[str]:
    """Return the result of a rollback as lines."""
    lines = ["rolled back: the old rules are loaded"]
    if done.forgotten:
        lines.append("the kernel had lost both rulesets (a reboot?)")
    lines += [f"{family}: table {table}: {how.value}" for family, table, how in done.tables]
    lines += done.reservations()
    return lines
