"""Outcomes as JSON Lines: the output of ``simulate`` and the contents of ``expect.jsonl``.

One flow per line. Each branch is the outcome of the flow's first packet; ``then`` lists the outcomes of its
later steps (pauses have none)::

    {"id": "dns", "outcomes": [{"probability": 0.5, "verdict": "forward", "out": "pod0", …,
      "then": [{"verdict": "forward", …}]}, …]}

A probability is exact: a JSON number if a double represents it exactly (0.5, and every multiple of 2**-31
that ``statistic`` can make), otherwise the fraction as text (``"1/3"``). Fields that are None, False or equal
to their default (a TOS of 0) are left out. ``"guessed": true`` next to the outcomes means that their
probabilities depend on the kernel's version.

If the input hides a condition, each branch lists its assumptions, and its probability holds under them; a
branch with a hidden target has the verdict ``unknown``::

    {"probability": 1, "assuming": [{"line": 12, "matches": true, "packet": "in eth0",
      "hidden": ["the listing hides interfaces (iptables -L without -v)"]}], "verdict": …}

Expectations have no assumptions: :func:`read_results` rejects such branches.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

from backends.model.outcome import Assumption, FlowResult, Outcome, OutcomeBranch, QuotedTuple, Verdict
from backends.model.packet import Address, Port, PortClass
from translate.dataclass import fields
from translate.ir import Family, format_address
from translate.jsoninput import MISSING, JsonObject, Problems, json_lines

__all__ = [
    "assumption_to_json",
    "outcome_to_json",
    "probability_text",
    "read_results",
    "result_to_json",
    "write_results",
]


def probability_text(probability: Fraction) -> float | int | str:
    """Return the exact probability in a form for JSON: a number, or a fraction as text."""
    if probability.denominator == 1:
        return int(probability)
    number = float(probability)
    return number if Fraction(number) == probability else str(probability)


def _port(port: Port, _family: Family) -> object:
    return {"min": port.low, "max": port.high} if isinstance(port, PortClass) else port


def outcome_to_json(outcome: Outcome, family: Family) -> dict[str, object]:
    """Return one outcome as a plain dictionary, in the order of its fields."""
    arrived = outcome.verdict in (Verdict.FORWARD, Verdict.LOCAL)
    out: dict[str, object] = {}
    for (_, key, default, write, _), value in zip(_FORMS, _VALUES(outcome), strict=True):
        if value is not None and (arrived if value.__class__ is bool else value != default):
            out[key] = value if write is None else write(value, family)
    return out


def _quoted_to_json(quoted: QuotedTuple, family: Family) -> dict[str, object]:
    out: dict[str, object] = {
        "src": format_address(family, quoted.src),
        "dst": format_address(family, quoted.dst),
    }
    for key, port in (("sport", quoted.sport), ("dport", quoted.dport)):
        if port is not None:
            out[key] = _port(port, family)
    return out


def assumption_to_json(assumption: Assumption) -> dict[str, object]:
    """Return an assumption as a plain dictionary; ``packet`` is left out when empty."""
    out: dict[str, object] = {"line": assumption.line, "matches": assumption.matches}
    if assumption.packet:
        out["packet"] = assumption.packet
    return {**out, "hidden": list(assumption.hidden)}


def result_to_json(result: FlowResult, family: Family) -> dict[str, object]:
    """Return a flow's result as the JSON object that :func:`read_results` reads."""
    branches = []
    for branch in result.branches:
        outcomes = [outcome_to_json(o, family) for o in branch.outcomes]
        fields: dict[str, object] = {"probability": probability_text(branch.probability)}
        if branch.assuming:
            fields["assuming"] = [assumption_to_json(a) for a in branch.assuming]
        fields.update(outcomes[0] if outcomes else {})
        if len(outcomes) > 1:
            fields["then"] = outcomes[1:]
        branches.append(fields)
    out: dict[str, object] = {"id": result.flow_id, "outcomes": branches}
    if result.guessed:
        out["guessed"] = True
    if result.notes:
        out["notes"] = list(result.notes)
    return out


def write_results(results: Iterable[tuple[FlowResult, Family]]) -> str:
    """Return results, each paired with the family of its flow, as JSON Lines."""
    lines = [json.dumps(result_to_json(r, f), ensure_ascii=False) for r, f in results]
    return "".join(line + "\n" for line in lines)


def read_results(data: bytes, *, name: str) -> tuple[FlowResult, ...]:
    """Return the results; ParseError with every problem, also when probabilities do not sum to 1."""
    problems = Problems()
    results: dict[str, FlowResult] = {}
    for obj in json_lines(data, name=name, problems=problems):
        flow_id = obj.text("id", None)
        if not flow_id:
            obj.problem("id" if obj.has("id") else None, "id is missing or empty")
        branches = [_read_branch(branch) for branch in obj.objects("outcomes")]
        if not branches and obj.ok:
            obj.problem("outcomes" if obj.has("outcomes") else None, "outcomes are missing")
        notes = obj.take("notes")
        if notes is MISSING:
            notes = []
        if not isinstance(notes, list) or not all(isinstance(n, str) for n in notes):
            obj.problem("notes", "expected a list of strings")
        guessed = obj.flag("guessed")
        obj.finish()
        if obj.ok and sum(b.probability for b in branches) != 1:
            total = sum((b.probability for b in branches), Fraction(0))
            obj.problem("outcomes", f"probabilities sum to {total}, not to 1")
        if flow_id in results:
            obj.problem("id", f"{flow_id!r} is given twice")
        if obj.ok and flow_id and isinstance(notes, list):
            results[flow_id] = FlowResult(flow_id, tuple(branches), tuple(notes), guessed=guessed)
    problems.raise_if_any()
    return tuple(results.values())


def _read_branch(obj: JsonObject) -> OutcomeBranch:
    probability = _read_probability(obj)
    outcomes = [_read_outcome(obj)]
    for later in obj.objects("then"):
        outcomes.append(_read_outcome(later))
        later.finish()
    obj.finish()
    return OutcomeBranch(probability, tuple(outcomes))


def _read_probability(obj: JsonObject) -> Fraction:
    value = obj.take("probability")
    if value is MISSING:
        return Fraction(1)
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        try:
            probability = Fraction(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            probability = Fraction(0)
        if 0 < probability <= 1:
            return probability
    obj.problem("probability", 'expected a number or a fraction like "1/3", above 0 and up to 1')
    return Fraction(1)


def _read_outcome(obj: JsonObject) -> Outcome:
    text = obj.text("verdict", None)
    verdict = Verdict.DROP
    known = [v for v in Verdict if v is not Verdict.UNKNOWN]
    if text in known:
        verdict = Verdict(text)
    else:
        obj.problem("verdict" if obj.has("verdict") else None, f"expected one of {', '.join(known)}")
    values = {form.field: form.read(obj, form.key) for form in _FORMS if form.field not in _READ_APART}
    return Outcome(verdict=verdict, **values)


def _read_address(obj: JsonObject, key: str) -> int | None:
    address = obj.address(key)
    return None if address is None else address[1]


def _read_port(obj: JsonObject, key: str) -> Port | None:
    value = obj.data.get(key)
    if not isinstance(value, dict):
        return obj.integer(key, None, low=0, high=65535)
    obj.take(key)
    inner = obj.child(key, value)
    low = inner.integer("min", 0, low=0, high=65535)
    high = inner.integer("max", 65535, low=0, high=65535)
    inner.finish()
    if low > high:
        inner.problem(None, f"min {low} is above max {high}")
    return PortClass(low, high)


def _read_quoted(obj: JsonObject, key: str) -> QuotedTuple | None:
    value = obj.take(key)
    if value is MISSING:
        return None
    if not isinstance(value, dict):
        obj.problem(key, "expected an object")
        return None
    inner = obj.child(key, value)
    src, dst = inner.address("src"), inner.address("dst")
    sport, dport = _read_port(inner, "sport"), _read_port(inner, "dport")
    inner.finish()
    if src is None or dst is None:
        inner.problem(None, "src and dst are required")
        return None
    return QuotedTuple(src[1], dst[1], sport, dport)


_Write = Callable[[Any, Family], object] | None
_Read = Callable[[JsonObject, str], Any]


class _Form(NamedTuple):
    """The JSON form of one field of an outcome; if ``write`` is None, the value is written unchanged."""

    field: str
    key: str
    default: object
    write: _Write
    read: _Read


def _form(field: str, hint: Any, default: object) -> _Form:
    """Return the form of a field by its type. Raises TypeError for a type that has none."""
    key = _KEYS.get(field, field)
    for kind, write, read in _TYPES:
        if hint in (kind, kind | None):
            return _Form(field, key, default, write, read)
    for kind in (hint, *get_args(hint)):
        for values in get_args(kind)[1:] if get_origin(kind) is Annotated else ():
            if isinstance(values, range):
                number = default if isinstance(default, int) else None
                return _Form(field, key, default, None, partial(_read_number, values=values, default=number))
    raise TypeError(f"no JSON form is known for {field}: {hint}")


def _read_number(
    obj: JsonObject, key: str, values: range = range(1 << 64), default: int | None = None
) -> int | None:
    return obj.integer(key, default, low=values.start, high=values.stop - 1)


_KEYS: Final = {"reject_with": "with"}
"""Keys that differ from the name of the field."""
_READ_APART: Final = frozenset({"verdict", "hidden"})
"""Fields read by code of their own: ``verdict`` is required, and expectations have no ``hidden``."""
_TYPES: Final[tuple[tuple[Any, _Write, _Read], ...]] = (
    (Verdict, lambda verdict, _: verdict.value, lambda obj, key: obj.text(key, None)),
    (Address, lambda address, family: format_address(family, address), _read_address),
    (Port, _port, _read_port),
    (QuotedTuple, _quoted_to_json, _read_quoted),
    (bool, None, JsonObject.flag),
    (str, None, lambda obj, key: obj.text(key, None)),
    (int, None, _read_number),
)
_HINTS: Final = get_type_hints(Outcome, include_extras=True)
_FORMS: Final = tuple(
    _form(outcome_field.name, _HINTS[outcome_field.name], outcome_field.default)
    for outcome_field in fields(Outcome)
)
_VALUES: Final = attrgetter(*(form.field for form in _FORMS))
