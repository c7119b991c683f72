"""Contents of a page of findings: sections, findings, and paths of packets as hops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from backends.model.outcome import Outcome
from harness.corpus.formats.outcomes import outcome_to_json
from harness.report.text import format_value
from translate.dataclass import dataclass
from translate.ir import Family

__all__ = [
    "Box",
    "Drawing",
    "Edge",
    "Field",
    "Finding",
    "Hop",
    "Level",
    "Line",
    "Page",
    "Path",
    "Section",
    "changed_fields",
]


@dataclass(frozen=True, slots=True)
class Level:
    """A severity: its id in attributes, its name, and a sentence about its findings."""

    id: str
    name: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One place on the path of a packet.

    ``kind`` is ``hook``, ``chain``, ``rule``, ``missed`` (rules that do not match), ``step`` or ``end``.
    ``line`` is that of a rule, 0 if unknown; ``service`` is the rule's service. ``decides``: without this hop
    the packet might have another outcome.
    """

    kind: str
    text: str
    note: str = ""
    line: int = 0
    service: str = ""
    decides: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a drawing: its place in pixels, a text, and a smaller note below it (empty: none).

    ``kind`` is ``hook``, ``chain``, ``decides``, ``folded`` (chains that were not taken) or ``end``.
    ``title`` is the whole text if it is longer than the box, else empty.
    """

    kind: str
    text: str
    note: str
    title: str
    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Edge:
    """A line of a drawing: from (``x``, ``top``) down to ``bottom``, and from there right to ``end``."""

    x: int
    top: int
    bottom: int
    end: int
    taken: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """The chains of a path, drawn; the size is in pixels."""

    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """The path of one packet, drawn and in words, with a title that names the packet and the rules."""

    title: str
    hops: tuple[Hop, ...]
    drawing: Drawing


@dataclass(frozen=True, slots=True)
class Field:
    """A field of two outcomes; values are empty if absent."""

    name: str
    before: str
    after: str

    @property
    def differs(self) -> bool:
        """True if the values differ."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file of rules; ``packets`` is its counter, None if unknown."""

    file: str
    line: int
    text: str
    packets: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding. ``before`` and ``after`` are one-line outcomes, empty for a finding without a packet.

    ``nodes`` are indices of the page's nodes. ``others`` are further examples, each a packet with its two
    outcomes and the id of its flow.
    """

    level: Level
    subject: str
    packet: str = ""
    before: str = ""
    after: str = ""
    detail: str = ""
    command: str = ""
    traffic: str = ""
    nodes: tuple[int, ...] = ()
    lines: tuple[Line, ...] = ()
    fields: tuple[Field, ...] = ()
    paths_before: tuple[Path, ...] = ()
    paths_after: tuple[Path, ...] = ()
    others: tuple[tuple[str, str, str, str], ...] = ()
    more: int = 0
    """The number of examples that are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Findings of one kind. ``facts`` are pairs of a label and a text about all of them."""

    id: str
    name: str
    title: str
    findings: tuple[Finding, ...]
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page of findings.

    ``good`` is True for a verdict without a reservation. ``facts`` are pairs of a label and a text; ``notes``
    are titled lists of sentences. ``sides`` are the names of the two compared outcomes.
    """

    title: str
    verdict: str
    good: bool
    levels: tuple[Level, ...]
    sections: tuple[Section, ...]
    facts: tuple[tuple[str, str], ...]
    kind: str
    notes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    sides: tuple[str, str] = ("before", "after")
    nodes: tuple[str, ...] = ()

    @property
    def findings(self) -> int:
        """The number of findings."""
        return sum(len(section.findings) for section in self.sections)

    @property
    def counts(self) -> tuple[tuple[Level, int], ...]:
        """Each severity with the number of its findings, without those that have none."""
        counts = Counter(finding.level for section in self.sections for finding in section.findings)
        return tuple((level, counts[level]) for level in self.levels if level in counts)

    @property
    def services(self) -> tuple[str, ...]:
        """The subjects of findings, each once, for suggestions."""
        return tuple(sorted({f.subject for section in self.sections for f in section.findings}))


def changed_fields(before: Outcome, after: Outcome, family: Family) -> tuple[Field, ...]:
    """Return the fields of two outcomes, in the order and with the names of their JSON form."""
    sides: Sequence[dict[str, object]] = [outcome_to_json(side, family) for side in (before, after)]
    names = dict.fromkeys(name for side in sides for name in side)
    values = [[_value(side[name]) if name in side else "" for side in sides] for name in names]
    return tuple(Field(name, *pair) for name, pair in zip(names, values, strict=True))


def _value(value: object) -> str:
    if isinstance(value, dict) and set(value) == {"min", "max"}:
        return f"a port of {value['min']}-{value['max']}"
    return format_value(value)
