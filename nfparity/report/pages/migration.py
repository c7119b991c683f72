"""The page of ``nfparity migrate plan``: packets that differ, points to check, and what is replaced."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from harness.counted import counted
from harness.report.notes import note_lines
from harness.report.text import verdict_text
from nfparity.migrate.planning.planning import Planned, PlannedFamily
from nfparity.report.migration import changed_texts, kube_proxys, left_tables, packets_text, static_lines
from nfparity.report.pages.content import Finding, Level, Page, Section
from nfparity.report.pages.page import render
from nfparity.report.pages.parity import PARITY_LEVELS, parity_sections
from translate.dataclass import replace

__all__ = ["migration_page"]

_CHECK: Final = Level("snapshot", "Check", "to be decided or done before the plan is applied")


def migration_page(planned: Planned, *, command: str, output: str | None, version: str) -> str:
    """Return the plan as a page.

    ``command`` makes the plan again, ``output`` is the file to which it is written if no packet differs;
    ``version`` is this program's.
    """
    sections = [section for family in planned.families for section in _different(family, command)]
    checks = tuple(_checks(planned.families))
    if checks:
        sections.append(
            Section(
                id="checks",
                name="Before it is applied",
                title="what the packets cannot show",
                findings=checks,
            )
        )
    facts = [fact for family in planned.families for fact in _facts(family)]
    facts.append(("Plan", planned.plan.digest))
    facts.append(("Reproduce", command))
    if planned.parity and output is not None:
        facts.append(("Apply", f"nfparity migrate apply {output}"))
    page = Page(
        title="Migration of this node from iptables to nftables",
        verdict=_verdict(planned, len(checks)),
        good=planned.parity and not checks,
        levels=(*PARITY_LEVELS, _CHECK),
        sections=tuple(sections),
        facts=tuple(facts),
        kind="Part",
        notes=tuple(_notes(planned.families)),
        sides=("expected", "observed"),
    )
    return render("findings.html", {"page": page, "version": version})


def _verdict(planned: Planned, checks: int) -> str:
    if not planned.parity:
        verdicts = "; ".join(
            f"{_version(family)}: {verdict_text(family.report)}"
            for family in planned.families
            if not family.report.parity
        )
        return f"No plan is written: {verdicts}."
    flows = counted(sum(family.report.flows for family in planned.families), "flow")
    rest = f" {counted(checks, 'point')} to check before it is applied." if checks else ""
    return f"No packet is treated differently, in {flows}.{rest}"


def _different(family: PlannedFamily, command: str) -> Iterator[Section]:
    """Yield the differences of each backend; ``command`` reproduces them, because it reads the live rules."""
    differences = tuple(replace(each, command=command) for each in family.report.differences)
    report = replace(family.report, differences=differences)
    name = family.plan.family.value
    for section in parity_sections(report, (family.batch,)):
        yield replace(section, id=f"{name}-{section.id}", name=f"{_version(family)}, {section.name}")


def _checks(families: Sequence[PlannedFamily]) -> Iterator[Finding]:
    for family in families:
        for table in kube_proxys(family):
            yield Finding(
                level=_CHECK,
                subject=f"{_version(family)} table {table}",
                detail="kube-proxy writes these rules: stop it first, or it writes them again",
            )
        for name in family.untried:
            yield Finding(
                level=_CHECK,
                subject=f"{_version(family)} table {name}",
                detail="it is kept and cannot be simulated: the packets were sent without it",
            )


def _facts(family: PlannedFamily) -> Iterator[tuple[str, str]]:
    version = _version(family)
    yield version, f"iptables-{family.plan.variant.value} to nftables"
    for label, text in changed_texts(family):
        yield f"{version} {label}", text
    yield f"{version} packets", packets_text(family.report)


def _notes(families: Sequence[PlannedFamily]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield titled lists: later changes, the chains that are replaced, and the limits of the translation."""
    yield "Later changes of the rules", tuple(line.strip() for line in static_lines(families))
    for family in families:
        for table in family.plan.removed:
            if table.chains:
                yield f"Chains replaced in {_version(family)} table {table.name}", table.chains
        for table in left_tables(family):
            if table.chains:
                yield f"Chains kept in {_version(family)} table {table.name}", table.chains
        assumed = family.batch.node.assumed
        for title, sentences in (
            (f"Known limits, {_version(family)}", tuple(note_lines(family.notes))),
            (f"Assumptions, {_version(family)}", assumed),
        ):
            if sentences:
                yield title, tuple(sentences)


def _version(family: PlannedFamily) -> str:
    return f"IPv{family.plan.family.version}"
