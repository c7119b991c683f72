"""The parity report as SARIF: each difference at the lines of the rules that decide it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from harness.diff.result import Difference, ParityReport
from harness.report.sarif import sarif_locations, sarif_log
from harness.report.text import format_value

__all__ = ["parity_sarif"]

_KINDS: Final = {
    "verdict": "a packet has another fate: forwarded, delivered, dropped, rejected",
    "with": "a packet is rejected with another answer",
    "out": "a packet leaves by another interface",
    "address": "a packet arrives with another source or destination",
    "translation": "a packet's source or destination is translated although it should not be, or the reverse",
    "mark": "a packet has another mark",
    "ttl": "a packet has another time to live",
    "quoted": "an ICMP error quotes another packet",
    "path": "an expected path is never taken",
    "share": "a random branch is taken more or less often than it should be",
    "note": "a wrong packet: a bad checksum or an unexpected frame",
    "other": "another difference of a flow",
}
_OF_FIELD: Final = {
    "src": "address",
    "dst": "address",
    "sport": "address",
    "dport": "address",
    "snat": "translation",
    "dnat": "translation",
}


def parity_sarif(report: ParityReport, *, version: str) -> str:
    """Return the report as a SARIF log of one run; ``version`` is the version of nfparity."""
    rules: list[dict[str, object]] = [
        {
            "id": f"difference/{kind}",
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": "error"},
        }
        for kind, text in _KINDS.items()
    ]
    untested = [f"{backend.name}: {why}" for backend in report.backends for why in backend.untested]
    return sarif_log(rules, _results(report), version=version, untested=untested)


def _results(report: ParityReport) -> Iterator[dict[str, object]]:
    for difference in report.differences:
        expected, observed = format_value(difference.expected), format_value(difference.observed)
        text = (
            f"{difference.backend}, flow {difference.flow_id}, {difference.step_text}: {difference.field}: "
            f"expected {expected}, observed {observed}. Reproduce: {difference.command}"
        )
        yield {
            "ruleId": f"difference/{_kind(difference)}",
            "level": "error",
            "message": {"text": text},
            "locations": sarif_locations(difference.origins, (difference.rules_path,)),
            "partialFingerprints": {"difference": _fingerprint(difference)},
        }


def _fingerprint(difference: Difference) -> str:
    return f"{difference.backend} {difference.flow_id} {difference.step} {difference.field}"


def _kind(difference: Difference) -> str:
    head = difference.field.partition(".")[0]
    kind = _OF_FIELD.get(head, head)
    return kind if kind in _KINDS else "other"
