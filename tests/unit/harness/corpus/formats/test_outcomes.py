from __future__ import annotations

import json
from fractions import Fraction

import pytest

from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import PortClass
from harness.corpus.formats.outcomes import probability_text, read_results, result_to_json, write_results
from translate.errors import ParseError
from translate.ir import Family, parse_address


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


FORWARD = Outcome(
    verdict=Verdict.FORWARD,
    out="pod0",
    src=ip("10.244.0.1"),
    dst=ip("10.244.0.3"),
    sport=PortClass(1024, 65535),
    dport=53,
    ttl=63,
    mark=0,
    dnat=True,
    snat=True,
)
REJECT = Outcome(verdict=Verdict.REJECT, reject_with="icmp-port-unreachable")
ERROR = Outcome(
    verdict=Verdict.LOCAL,
    src=1,
    dst=2,
    ttl=64,
    mark=0,
    quoted=QuotedTuple(ip("10.0.0.1"), ip("10.0.0.2"), 7, None),
)


def test_the_line_of_the_design() -> None:
    result = FlowResult(
        "dns", (OutcomeBranch(Fraction(1, 2), (FORWARD,)), OutcomeBranch(Fraction(1, 2), (REJECT,)))
    )
    plain = result_to_json(result, Family.IP)
    assert plain == {
        "id": "dns",
        "outcomes": [
            {
                "probability": 0.5,
                "verdict": "forward",
                "out": "pod0",
                "src": "10.244.0.1",
                "dst": "10.244.0.3",
                "sport": {"min": 1024, "max": 65535},
                "dport": 53,
                "ttl": 63,
                "dnat": True,
                "snat": True,
                "mark": 0,
            },
            {"probability": 0.5, "verdict": "reject", "with": "icmp-port-unreachable"},
        ],
    }


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (Fraction(1), 1),
        (Fraction(1, 2), 0.5),
        (Fraction(1, 3), "1/3"),
        (Fraction(715827883, 2**31), 715827883 / 2**31),
        (Fraction(1, 2**31) * Fraction(2**31 - 1, 2**31), (2**31 - 1) / 2**62),
        (Fraction(1, 6), "1/6"),
    ],
)
def test_probabilities_are_exact(probability: Fraction, shown: object) -> None:
    text = probability_text(probability)
    assert text == shown
    assert Fraction(json.loads(json.dumps(text))) == probability


def test_reading_what_was_written_gives_it_back() -> None:
    results = (
        FlowResult(
            "a",
            (OutcomeBranch(Fraction(1, 3), (FORWARD, REJECT)), OutcomeBranch(Fraction(2, 3), (ERROR, ERROR))),
        ),
        FlowResult(
            "b", (OutcomeBranch(Fraction(1), (Outcome(verdict=Verdict.UNSENT),)),), ("a stray frame",)
        ),
    )
    text = write_results((r, Family.IP) for r in results)
    assert read_results(text.encode(), name="e") == results


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"outcomes": [{"verdict": "drop"}]}', "id is missing"),
        ('{"id": "a"}', "outcomes are missing"),
        ('{"id": "a", "outcomes": [{"verdict": "dropped"}]}', "expected one of forward, local"),
        ('{"id": "a", "outcomes": [{"probability": 0.5, "verdict": "drop"}]}', "sum to 1/2, not to 1"),
        (
            '{"id": "a", "outcomes": [{"probability": "1/0", "verdict": "drop"}]}',
            "expected a number or a fraction",
        ),
        (
            '{"id": "a", "outcomes": [{"probability": 2, "verdict": "drop"}]}',
            "expected a number or a fraction",
        ),
        (
            '{"id": "a", "outcomes": [{"verdict": "drop", "sport": {"min": 9, "max": 3}}]}',
            "min 9 is above max 3",
        ),
        ('{"id": "a", "outcomes": [{"verdict": "drop", "colour": 1}]}', "unknown key 'colour'"),
        ('{"id": "a", "outcomes": [{"verdict": "drop"}], "notes": 5}', "expected a list of strings"),
    ],
)
def test_what_is_wrong_is_said(line: str, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("(", r"\(")):
        read_results(line.encode(), name="e")
