"""The parity report for CI: JUnit XML, one suite per backend and one failed case per differing flow."""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, indent, tostring

from harness.parity import Difference, ParityReport
from harness.report.text import format_value

__all__ = ["parity_junit"]


def parity_junit(report: ParityReport) -> str:
    """Return the report as JUnit XML. Flows without a difference are counted, not listed."""
    root = Element("testsuites", name="nfparity")
    for one in report.backends:
        by_flow: dict[str, list[Difference]] = {}
        for difference in report.differences:
            if difference.backend == one.name:
                by_flow.setdefault(difference.flow_id, []).append(difference)
        skipped = one.skipped is not None
        suite = SubElement(
            root,
            "testsuite",
            name=one.name if report.level is None else f"{one.name} -O{report.level}",
            tests=str(1 if skipped else max(one.flows, len(by_flow))),
            failures=str(len(by_flow)),
            errors="0",
            skipped=str(int(skipped)),
        )
        if one.skipped is not None:
            case = SubElement(suite, "testcase", classname=one.name, name="every flow")
            SubElement(case, "skipped", message=_printable(one.skipped))
        elif not by_flow:
            SubElement(suite, "testcase", classname=one.name, name=f"{one.flows} flows agree")
        for flow_id, differences in by_flow.items():
            case = SubElement(suite, "testcase", classname=one.name, name=_printable(flow_id))
            fields = ", ".join(dict.fromkeys(d.field for d in differences))
            failure = SubElement(case, "failure", message=_printable(f"differs in {fields}"))
            failure.text = _printable("\n\n".join(_describe(d) for d in differences))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _describe(difference: Difference) -> str:
    lines = [
        f"{difference.step_text}: {difference.field}",
        f"expected {format_value(difference.expected)}",
        f"observed {format_value(difference.observed)}",
        *(f"decided by {rule}" for rule in difference.rules),
        f"replay: {difference.command}",
    ]
    return "\n".join(lines)


def _printable(text: str) -> str:
    """XML 1.0 has no control characters, not even escaped."""
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in text)
