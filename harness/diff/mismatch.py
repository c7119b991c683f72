"""The fields in which an observed branch differs from the expected one, for reports.

deepdiff compares plain dictionaries of JSON values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from backends.model.flow import Flow
from backends.model.outcome import Outcome, OutcomeBranch
from backends.model.packet import PortClass
from harness.corpus.formats.outcomes import outcome_to_json
from harness.diff.agreement import PORTS, ignored_fields, paired_outcomes, port_agrees, quoted_agrees
from translate.dataclass import dataclass, replace
from translate.ir import Family

__all__ = ["Mismatch", "different_fields", "outcome_texts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """One field of one step that is not as expected; values are plain JSON values or None.

    ``step`` is an index into the flow's steps, or None for the flow as a whole (``field`` is then
    ``note``). ``branch`` is the index of the expected branch that it was compared with.
    """

    step: int | None
    field: str
    expected: object
    observed: object
    branch: int | None = None


def different_fields(
    flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch, index: int
) -> Iterator[Mismatch]:
    """Yield the fields in which ``observed`` differs from the expected branch, which is number ``index``."""
    wanted, have = _plain(flow, expected, observed)
    differences = _differing(tuple((step, tuple(sorted(fields))) for step, fields in wanted.items()))
    if not differences:
        raise AssertionError(f"{flow.id}: no branch agrees, but no field differs from branch {index}")
    for step, field in differences:
        want, other = _present(wanted[step][field]), _present(have[step][field])
        yield Mismatch(step=int(step), field=field, expected=want, observed=other, branch=index)


@lru_cache(maxsize=1024)
def _differing(names: tuple[tuple[str, tuple[str, ...]], ...]) -> tuple[tuple[str, str], ...]:
    """Return step and name of each field that differs, from the steps and names in :func:`_plain`.

    The values there are all unequal. deepdiff takes a millisecond, and few combinations of names occur, so it
    compares two values that stand for all.
    """
    from deepdiff import DeepDiff

    wanted, have = ({step: dict.fromkeys(fields, value) for step, fields in names} for value in (0, 1))
    changes = DeepDiff(wanted, have, view="tree").values()
    items = (item for alike in changes for item in alike)
    differences = [tuple(item.path(output_format="list")) for item in items]
    return tuple(sorted(differences, key=lambda f: (int(f[0]), _order(f[1]), f[1])))


def _present(value: object) -> object:
    if isinstance(value, str):
        return str(value)  # a verdict is an enumeration, too
    return value if isinstance(value, int | float | bool | dict | list) else None


def _order(field: str) -> int:
    names = ("verdict", "with", "out", "src", "sport", "dst", "dport", "dnat", "snat", "mark", "ttl")
    head = field.partition(".")[0]
    return names.index(head) if head in names else len(names)


def _plain(
    flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch
) -> tuple[dict[str, dict[str, object]], dict[str, dict[str, object]]]:
    """Return the fields of both branches that differ, as dictionaries by step with the same keys.

    The keys are the same because deepdiff treats two dictionaries with few common keys as single values.
    Equal fields are left out because deepdiff takes half a millisecond for those of two steps. If the
    verdicts differ, only they are kept, because the other fields depend on them.
    """
    wanted: dict[str, dict[str, object]] = {}
    have_fields: dict[str, dict[str, object]] = {}
    family = flow.family
    ignored: Sequence[frozenset[str]] = ignored_fields(flow, expected, observed)
    for (step, want, have), unseen in zip(paired_outcomes(flow, expected, observed), ignored, strict=False):
        wanted_fields, other = outcome_texts(want, family), outcome_texts(_with_classes(want, have), family)
        moved = want.verdict is not have.verdict
        keys = {"verdict"} if moved else (wanted_fields.keys() | other.keys()) - unseen
        different = {key for key in keys if wanted_fields.get(key) != other.get(key)}
        if different:
            wanted[str(step)] = {key: wanted_fields.get(key) for key in different}
            have_fields[str(step)] = {key: other.get(key) for key in different}
    return wanted, have_fields


def _with_classes(expected: Outcome, observed: Outcome) -> Outcome:
    for field in PORTS:
        want = getattr(expected, field)
        if isinstance(want, PortClass) and port_agrees(want, getattr(observed, field)):
            observed = replace(observed, sport=want) if field == "sport" else replace(observed, dport=want)
    if observed.quoted is not None and quoted_agrees(expected, observed):
        observed = replace(observed, quoted=expected.quoted)
    return observed


def outcome_texts(outcome: Outcome, family: Family) -> dict[str, object]:
    """Return the outcome as a flat dictionary, with port classes as text."""
    flat: dict[str, object] = {}
    for key, value in outcome_to_json(outcome, family).items():
        inner = value.items() if key == "quoted" and isinstance(value, dict) else ()
        flat |= {f"quoted.{name}": _port_text(v) for name, v in inner} or {key: _port_text(value)}
    return flat


def _port_text(value: object) -> object:
    return f"{value['min']}-{value['max']}" if isinstance(value, dict) else value
