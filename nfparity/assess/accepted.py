"""Findings that a user has accepted: those of an earlier report, and those named on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nfparity.assess.assessing import Assessment, Finding
from nfparity.assess.catalogue import every_entry
from nfparity.assess.replay.orders import OrderDifference
from nfparity.assess.summary import Summary
from translate.dataclass import dataclass, replace
from translate.errors import InputError
from translate.ir import Family
from translate.jsoninput import Problems, read_object

__all__ = ["Accepted"]

_LEAK: Final = "LEAK"
_ORDER: Final = "ORDER"
_UNEXPLAINED: Final = "UNEXPLAINED"
_Key = tuple[str, str, str]
"""A finding: its family, its kind (an id of the catalogue, LEAK, ORDER or UNEXPLAINED), and its subject."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Accepted findings: ``keys`` of those in a report, and ``names`` from the command line.

    A name is an id of the catalogue (``K05``), or an id and a subject (``K05/web/api:http``).
    """

    keys: frozenset[_Key] = frozenset()
    names: frozenset[str] = frozenset()

    @classmethod
    def of_report(cls, text: str, *, name: str) -> Accepted:
        """Return the findings of a report of ``nfparity assess --format json``. Raises ParseError."""
        problems = Problems()
        expected = "a report of nfparity assess --format json"
        data = read_object(text, name=name, problems=problems, expected=expected)
        if not data.has("families"):
            data.problem(None, f"expected {expected}")
        keys: set[_Key] = set()
        for family in data.objects("families"):
            version = family.text("family", "")
            for finding in family.objects("findings"):
                keys.add((version, finding.text("id", ""), finding.text("affects", "")))
            for finding in family.objects("unexplained"):
                for example in finding.objects("examples"):
                    flow = example.object("flow")
                    keys.add((version, _UNEXPLAINED, "" if flow is None else flow.text("id", "")))
            for leak in family.objects("leaks"):
                keys.add((version, _LEAK, leak.text("kind", "")))
            for order in family.objects("orders") if family.has("orders") else ():
                keys.add((version, _ORDER, order.text("affects", "")))
        problems.raise_if_any()
        return cls(frozenset(keys))

    @classmethod
    def of_names(cls, names: Iterable[str]) -> Accepted:
        """Return the findings with these names. Raises InputError for an id that is not in the catalogue."""
        known = {_ORDER, *(entry.id for entry in every_entry())}
        for name in names:
            if name.partition("/")[0] not in known:
                raise InputError(
                    f"--accept {name}: no known difference has this id; nfparity assess lists them"
                )
        return cls(names=frozenset(names))

    def joined(self, other: Accepted) -> Accepted:
        """Return the findings of both."""
        return Accepted(self.keys | other.keys, self.names | other.names)

    def removed_from(self, summary: Summary) -> Summary:
        """Return the summary without the accepted findings; ``accepted`` is their number."""
        assessments = tuple(self._removed(assessment) for assessment in summary.assessments)
        number = sum(map(_size, summary.assessments)) - sum(map(_size, assessments))
        return replace(summary, assessments=assessments, accepted=summary.accepted + number)

    def _removed(self, assessment: Assessment) -> Assessment:
        family = assessment.facts.family
        return replace(
            assessment,
            findings=tuple(f for f in assessment.findings if not self._has(family, f)),
            unexplained=tuple(f for f in assessment.unexplained if not self._has(family, f)),
            orders=tuple(order for order in assessment.orders if not self._has_order(family, order)),
            leaks=tuple(leak for leak in assessment.leaks if (family, _LEAK, leak.kind) not in self.keys),
        )

    def _has_order(self, family: Family, order: OrderDifference) -> bool:
        names = (_ORDER, f"{_ORDER}/{order.subject}")
        return (family, _ORDER, order.subject) in self.keys or not self.names.isdisjoint(names)

    def _has(self, family: Family, finding: Finding) -> bool:
        if finding.entry is None:
            flows = {changed.flow.id for changed in finding.examples}
            return all((family, _UNEXPLAINED, flow) in self.keys for flow in flows)
        id_, subject = finding.entry.id, finding.subject
        return (family, id_, subject) in self.keys or not self.names.isdisjoint((id_, f"{id_}/{subject}"))


def _size(assessment: Assessment) -> int:
    lists = (assessment.findings, assessment.unexplained, assessment.leaks, assessment.orders)
    return sum(map(len, lists))
