"""The page of ``nfparity diff``: differences by backend and flow, with the expected path of each packet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from backends.model.clock import at_present
from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.simulator import Simulation
from harness.diff.batch import Batch
from harness.diff.deciding_rules import find_branch
from harness.diff.result import BackendReport, Difference, ParityReport, Result
from harness.report.notes import note_lines
from harness.report.text import format_value, verdict_text
from nfparity.assess.node.index import ServiceIndex
from nfparity.kubeproxy import recover
from nfparity.report.pages.content import Field, Finding, Hop, Level, Line, Page, Path, Section
from nfparity.report.pages.drawing import PathDrawer, observed_drawing
from nfparity.report.pages.hops import ServiceOf, service_names, traced_hops
from nfparity.report.pages.page import render
from translate.dataclass import dataclass

__all__ = ["PARITY_LEVELS", "parity_page", "parity_sections"]

_FATE: Final = Level("breaks", "Fate", "a packet has another fate: forwarded, delivered, dropped, rejected")
_FIELDS: Final = Level("changes", "Fields", "a packet arrives with other addresses, ports or marks")
_CHANCE: Final = Level(
    "doubt", "Chance", "a random branch is never taken, or is taken too often or too rarely"
)
PARITY_LEVELS: Final = (_FATE, _FIELDS, _CHANCE)


def parity_page(report: ParityReport, batches: Sequence[Batch], *, version: str) -> str:
    """Return the report as a page; ``batches`` are those that ran, ``version`` is this program's."""
    untested = tuple(f"{backend.name}: {why}" for backend in report.backends for why in backend.untested)
    skipped = tuple(f"{backend.name}: {backend.skipped}" for backend in report.backends if backend.skipped)
    notes = (
        ("Not tested", untested),
        ("Skipped", skipped),
        ("Assumptions", report.assumed),
        ("Known limits", tuple(note_lines(report.notes))),
        ("Rules that are not modelled", report.open_rules),
    )
    page = Page(
        title="Parity of the backends",
        verdict=verdict_text(report),
        good=report.result is Result.PARITY,
        levels=PARITY_LEVELS,
        sections=parity_sections(report, batches),
        kind="Backend",
        facts=(
            ("Rules", ", ".join(dict.fromkeys(batch.rules_path for batch in batches))),
            ("Expected", "the outcomes of the reference simulator"),
            ("Observed", "the outcomes of each backend"),
            (
                "Equal",
                ", ".join(b.name for b in report.backends if b.flows and not b.differing) or "no backend",
            ),
        ),
        notes=tuple(note for note in notes if note[1]),
        sides=("expected", "observed"),
    )
    return render("findings.html", {"page": page, "version": version})


def parity_sections(report: ParityReport, batches: Sequence[Batch]) -> tuple[Section, ...]:
    """Return the differences, a section for each backend with differences."""
    flows = _Flows(batches)
    return tuple(
        Section(
            id=f"backend-{number}",
            name=backend.name,
            title=_title(backend),
            findings=tuple(_findings(backend.name, report.differences, flows)),
        )
        for number, backend in enumerate(report.backends)
        if backend.differing
    )


def _title(backend: BackendReport) -> str:
    return f"{backend.differing} of {backend.flows} flows are different"


@dataclass(frozen=True, slots=True)
class _Place:
    """A flow with the simulation of its rules."""

    flow: Flow
    simulation: Simulation
    service_of: ServiceOf
    drawer: PathDrawer


class _Flows:
    """The flows of all batches, by rules and id."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches = tuple(batches)
        self._prepared: dict[int, tuple[Simulation, ServiceOf, PathDrawer]] = {}
        self._by_id = {
            (batch.rules_path, flow.id): (number, at_present(flow))
            for number, batch in enumerate(self._batches)
            for flow in batch.flows
        }

    def place(self, difference: Difference) -> _Place:
        """Return the flow of a difference."""
        number, flow = self._by_id[difference.rules_path, difference.flow_id]
        if number not in self._prepared:
            batch = self._batches[number]
            ruleset = batch.ruleset
            lines = ServiceIndex.of(recover(ruleset)).lines
            simulation = Simulation(Job(rules=ruleset, node=batch.node))
            service_of = service_names(lines, ruleset.family)
            self._prepared[number] = simulation, service_of, PathDrawer(ruleset, service_of)
        return _Place(flow, *self._prepared[number])


def _findings(name: str, differences: Iterable[Difference], flows: _Flows) -> Iterator[Finding]:
    """Yield a finding for each flow that differs on a backend, those with another fate first."""
    by_flow: dict[tuple[str, str], list[Difference]] = {}
    for difference in differences:
        if difference.backend == name:
            by_flow.setdefault((difference.rules_path, difference.flow_id), []).append(difference)
    findings = [_finding(group, flows) for group in by_flow.values()]
    yield from sorted(findings, key=lambda finding: PARITY_LEVELS.index(finding.level))


def _finding(differences: Sequence[Difference], flows: _Flows) -> Finding:
    first = differences[0]
    fields = tuple(
        Field(each.field, format_value(each.expected), format_value(each.observed)) for each in differences
    )
    origins = dict.fromkeys(origin for each in differences for origin in each.origins)
    place = flows.place(first)
    before = tuple(_expected(first, place))
    return Finding(
        level=min(map(_level, differences), key=PARITY_LEVELS.index),
        subject=first.flow_id,
        packet=first.step_text,
        before=", ".join(f"{field.name} {field.before}" for field in fields),
        after=", ".join(f"{field.name} {field.after}" for field in fields),
        detail=place.flow.why,
        command=first.command,
        fields=fields,
        lines=tuple(Line(origin.file, origin.line, origin.text) for origin in origins),
        paths_before=before,
        paths_after=(_observed(first.backend, first.step_text, fields),) if before else (),
    )


def _level(difference: Difference) -> Level:
    if difference.field in ("share", "path"):
        return _CHANCE
    return _FATE if difference.field in ("verdict", "with") else _FIELDS


def _expected(difference: Difference, place: _Place) -> Iterator[Path]:
    """Yield the path of the connection's first packet, if it is another packet, and the expected path."""
    if difference.branch is None or difference.step is None:
        return
    branch = find_branch(place.simulation, place.flow, difference.branch)
    steps = place.flow.steps
    sent = max(i for i in range(difference.step + 1) if isinstance(steps[i], Send))
    for step in dict.fromkeys((sent, difference.step)):
        whose = "Through the rules" if step == difference.step else "First packet of the connection"
        hops = traced_hops(branch.steps[step], place.flow.family, place.service_of)
        yield Path(whose, hops, place.drawer.draw(branch.steps[step]))


def _observed(backend: str, packet: str, fields: Iterable[Field]) -> Path:
    values = ", ".join(f"{field.name} {field.after}" for field in fields)
    hops = (
        Hop("hook", packet),
        Hop("step", f"{backend}, on the kernel", note="observed, not traced rule by rule"),
        Hop("end", f"observed: {values}"),
    )
    return Path(f"Through {backend}", hops, observed_drawing(hops))
