"""JUnit XML for CI: a test case for each flow and backend.

The format is ``junit-10.xsd`` of Jenkins' xUnit plugin, which other programs also read: each suite counts its
cases, and times are in seconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.diff.result import BackendReport, Difference, ParityReport
from harness.report.text import format_value
from translate.dataclass import dataclass

__all__ = ["Suite", "TestCase", "junit_text", "parity_junit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """One test: it passed, or one of ``failure``, ``error`` and ``skipped`` gives the reason in one line.

    ``detail`` is a longer description of a failure.
    """

    name: str
    seconds: float = 0.0
    failure: str | None = None
    detail: str = ""
    error: str | None = None
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of one backend; reports group its cases by ``classname``."""

    name: str
    classname: str
    cases: tuple[TestCase, ...]


def parity_junit(report: ParityReport, *, times: bool) -> str:
    """Return the report as JUnit XML; without ``times``, the same input gives the same text.

    A flow that was not tested is an error; the flows of a backend that cannot run here are skipped.
    """
    every = max((backend.cases for backend in report.backends), key=len, default=())
    by_flow: dict[tuple[str, str], list[Difference]] = {}
    for difference in report.differences:
        by_flow.setdefault((difference.backend, difference.flow_id), []).append(difference)
    level = "" if report.level is None else f" -O{report.level}"
    suites = [
        Suite(
            f"{backend.name}{level}",
            backend.name,
            tuple(_cases(backend, [case.flow_id for case in every], by_flow)),
        )
        for backend in report.backends
    ]
    return junit_text(suites, times=times)


def _cases(
    backend: BackendReport, every: Sequence[str], by_flow: dict[tuple[str, str], list[Difference]]
) -> list[TestCase]:
    if not backend.cases:
        why = "; ".join(backend.untested)
        return [TestCase(name=name, error=why or None, skipped=backend.skipped) for name in every]
    cases = []
    for case in backend.cases:
        differences = by_flow.get((backend.name, case.flow_id), [])
        fields = ", ".join(dict.fromkeys(d.field for d in differences))
        cases.append(
            TestCase(
                name=case.flow_id,
                seconds=case.seconds,
                failure=f"differs in {fields}" if differences else None,
                detail="\n\n".join(_describe(d) for d in differences),
                error=case.untested,
            )
        )
    return cases


def _describe(difference: Difference) -> str:
    lines = [
        f"{difference.step_text}: {difference.field}",
        f"expected {format_value(difference.expected)}",
        f"observed {format_value(difference.observed)}",
        *(f"decided by {rule}" for rule in difference.rules),
        f"replay: {difference.command}",
    ]
    return "\n".join(lines)


def junit_text(suites: Sequence[Suite], *, times: bool) -> str:
    """Return suites as JUnit XML."""
    root = Element("testsuites", name="nfparity")
    _count(root, [case for suite in suites for case in suite.cases], times=times)
    del root.attrib["skipped"]  # the schema allows the attribute only in suites
    for suite in suites:
        element = SubElement(root, "testsuite", name=_printable(suite.name))
        _count(element, suite.cases, times=times)
        for case in suite.cases:
            _add(element, suite.classname, case, times=times)
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count(element: Element, cases: Sequence[TestCase], *, times: bool) -> None:
    element.set("tests", str(len(cases)))
    for name, values in (
        ("failures", [case.failure for case in cases]),
        ("errors", [case.error for case in cases]),
        ("skipped", [case.skipped for case in cases]),
    ):
        element.set(name, str(sum(value is not None for value in values)))
    if times:
        element.set("time", f"{sum(case.seconds for case in cases):.3f}")


def _add(suite: Element, classname: str, case: TestCase, *, times: bool) -> None:
    element = SubElement(suite, "testcase", classname=_printable(classname), name=_printable(case.name))
    if times:
        element.set("time", f"{case.seconds:.3f}")
    if case.failure is not None:
        failure = SubElement(element, "failure", type="difference", message=_printable(case.failure))
        failure.text = _printable(case.detail)
    if case.error is not None:
        SubElement(element, "error", type="not tested", message=_printable(case.error))
    if case.skipped is not None:
        SubElement(element, "skipped", message=_printable(case.skipped))


_NO_XML: Final = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _printable(text: str) -> str:
    """Escape characters that XML 1.0 forbids even as references: control characters and surrogates."""
    return _NO_XML.sub("?", text)
