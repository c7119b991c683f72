"""Comparison of a flow's observed outcomes with the reference's.

The reference gives a set of branches, in which a port that the kernel picks is a class of ports. A backend
agrees if every observed path is in the set. Otherwise the path is compared with the *closest* branch, the one
with the fewest different fields. If a backend has run a flow often enough, a branch that was never observed
is a difference, too. If the rules leave the outcome open (a match that is not modelled), a backend agrees
with any of the possible outcomes.

One special case: a masquerade may pick the port (and address) that the packet already had. Then source NAT is
not visible, so the ``snat`` of that packet and the ``dnat`` of the answer are not compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import takewhile
from operator import attrgetter
from typing import Final

from backends.model.flow import Again, Flow, Pause, Reply, Send, Step
from backends.model.outcome import FlowResult, Outcome, OutcomeBranch, Verdict
from backends.model.packet import Port, PortClass
from harness.corpus.outcomes import outcome_to_json
from harness.diff.paths import normal_paths
from translate.ir import Family, TcpFlag

__all__ = [
    "DifferentPath",
    "Mismatch",
    "compare",
    "differing_paths",
    "matching_branches",
    "mismatches",
    "step_text",
]

_FIELDS: Final = tuple(field.name for field in fields(Outcome))
_PORTS: Final = ("sport", "dport")
_PLAIN: Final = tuple(field for field in _FIELDS if field not in (*_PORTS, "quoted"))
"""The fields that are compared for equality; ports, also those in ``quoted``, may be in a class."""


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


@dataclass(frozen=True, slots=True)
class DifferentPath:
    """A path that the reference does not allow; ``path`` is None for a difference of the whole flow."""

    path: OutcomeBranch | None
    mismatches: tuple[Mismatch, ...]


def compare(
    flow: Flow, expected: FlowResult, observed: FlowResult, *, miss: float = 0.0
) -> tuple[Mismatch, ...]:
    """Return every mismatch between ``observed`` and ``expected``; empty: parity.

    Each is reported once, even if it occurs on several paths. An expected path that was never observed is a
    mismatch if the chance of that is at most ``miss``. Notes of a backend (a wrong checksum, an unexpected
    frame) are mismatches, too.
    """
    return mismatches(differing_paths(flow, expected, observed, miss=miss))


def mismatches(paths: Iterable[DifferentPath]) -> tuple[Mismatch, ...]:
    """Return the mismatches of some paths, each once."""
    distinct: dict[str, Mismatch] = {}
    for path in paths:
        for mismatch in path.mismatches:
            distinct.setdefault(repr(replace(mismatch, branch=None)), mismatch)
    return tuple(distinct.values())


def differing_paths(
    flow: Flow, expected: FlowResult, observed: FlowResult, *, miss: float = 0.0
) -> Iterator[DifferentPath]:
    """Yield the mismatches of :func:`compare` by path, in an order that does not depend on random choices."""
    matched: set[int] = set()
    strange: list[OutcomeBranch] = []
    moved: dict[str, Mismatch] = {}
    wanted = len(_acting(flow))
    known = _Known(expected)
    comes_again = any(isinstance(step, Again) for step in flow.steps)
    for branch in observed.branches:
        if len(branch.outcomes) != wanted:
            cut = Mismatch(step=None, field="outcomes", expected=wanted, observed=len(branch.outcomes))
            yield DifferentPath(None, (cut,))
            return
        matching = known.matching(branch) or matching_branches(flow, expected, branch)
        matched.update(matching)
        if not matching:
            strange.append(branch)
        elif comes_again:
            likeliest = min(matching, key=lambda i: (-expected.branches[i].probability, i))
            ports = _moved_ports(flow, expected.branches[likeliest], branch, likeliest)
            moved.update((repr(mismatch), mismatch) for mismatch in ports)
    for branch in normal_paths(flow, strange, runs=observed.runs, expected=expected):
        closest = _closest(flow, expected, branch)
        if closest is None:
            none = Mismatch(step=None, field="branches", expected=0, observed=1)
            yield DifferentPath(branch, (none,))
            continue
        yield DifferentPath(branch, tuple(_differences(flow, expected.branches[closest], branch, closest)))
    for key in sorted(moved):
        yield DifferentPath(None, (moved[key],))
    if not strange:
        # Otherwise the missing branches may be the differing paths.
        for missing in _never_seen(flow, expected, observed, matched, miss):
            yield DifferentPath(None, (missing,))
    for note in observed.notes:
        yield DifferentPath(None, (Mismatch(step=None, field="note", expected=None, observed=note),))


class _Known:
    """An index of the expected branches, by their outcomes without source ports."""

    def __init__(self, expected: FlowResult) -> None:
        self._branches = expected.branches
        self._places: dict[tuple[object, ...], list[int]] = {}
        for place, branch in enumerate(expected.branches):
            self._places.setdefault(_but_source_ports(branch), []).append(place)

    def matching(self, observed: OutcomeBranch) -> tuple[int, ...]:
        """Return the indices of matching branches, without the special case described in the module."""
        return tuple(
            place
            for place in self._places.get(_but_source_ports(observed), ())
            if all(
                _port_agrees(want.sport, have.sport)
                for want, have in zip(self._branches[place].outcomes, observed.outcomes, strict=True)
            )
        )


_BUT_SOURCE_PORT: Final = attrgetter(*(field for field in _FIELDS if field != "sport"))


def _but_source_ports(branch: OutcomeBranch) -> tuple[object, ...]:
    return tuple([_BUT_SOURCE_PORT(outcome) for outcome in branch.outcomes])


def _closest(flow: Flow, expected: FlowResult, observed: OutcomeBranch) -> int | None:
    """Return the index of the expected branch with the fewest different fields, the likeliest of several."""
    return min(
        range(len(expected.branches)),
        key=lambda i: (_distance(flow, expected.branches[i], observed), -expected.branches[i].probability, i),
        default=None,
    )


def _never_seen(
    flow: Flow, expected: FlowResult, observed: FlowResult, matched: set[int], miss: float
) -> Iterator[Mismatch]:
    """Yield expected paths that are likely enough to occur in the runs, but were not observed.

    Nothing is reported if the runs are not independent, if the probabilities are guesses, or if the rules
    leave open which paths exist.
    """
    if not miss or expected.dependent or expected.guessed or observed.dependent or expected.is_open:
        return
    unseen = [i for i in range(len(expected.branches)) if i not in matched]
    for index in unseen:
        branch = expected.branches[index]
        if float(1 - branch.probability) ** observed.runs > miss:
            continue
        step, outcome = _first_apart(flow, branch, [expected.branches[i] for i in sorted(matched)])
        yield Mismatch(
            step=step,
            field="path",
            expected=_readable(outcome, flow.family),
            observed="never seen",
            branch=index,
        )


def _first_apart(flow: Flow, branch: OutcomeBranch, others: Sequence[OutcomeBranch]) -> tuple[int, Outcome]:
    """Return the first step at which a branch differs from all others, or the last step if there is none."""
    steps = [i for i, _ in _acting(flow)]
    place = 0
    for place, outcome in enumerate(branch.outcomes):
        if all(other.outcomes[place] != outcome for other in others):
            break
    return steps[place], branch.outcomes[place]


def matching_branches(flow: Flow, expected: FlowResult, observed: OutcomeBranch) -> tuple[int, ...]:
    """Return the indices of the expected branches that ``observed`` agrees with."""
    return tuple(i for i, branch in enumerate(expected.branches) if not _distance(flow, branch, observed))


def step_text(flow: Flow, step: int | None) -> str:
    """Return a short description of a step of a flow."""
    if step is None:
        return "the flow"
    acting = flow.steps[step]
    kind = "first packet" if step == 0 else type(acting).__name__.lower()
    return f"{kind} {acting.packet}" if isinstance(acting, Send) else f"{kind} (step {step})"


def _acting(flow: Flow) -> list[tuple[int, Step]]:
    """Return the steps that have an outcome, with their indices."""
    return [(i, s) for i, s in enumerate(flow.steps) if not isinstance(s, Pause)]


def _distance(flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch) -> int:
    """Return the number of fields that differ; a different verdict weighs more than any field."""
    if len(expected.outcomes) != len(observed.outcomes):
        return 1000
    total = 0
    for (_, want, have), ignored in zip(
        _paired(flow, expected, observed), _ignored(flow, expected, observed), strict=False
    ):
        if want == have:
            continue
        total += 20 * (want.verdict is not have.verdict)
        total += sum(getattr(want, f) != getattr(have, f) for f in _PLAIN if f not in ignored)
        total += sum(not _port_agrees(getattr(want, f), getattr(have, f)) for f in _PORTS)
        total += not _quoted_agrees(want, have)
    return total


def _paired(
    flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch
) -> list[tuple[int, Outcome, Outcome]]:
    """Yield the expected and observed outcome of each step, up to the first that the rules leave open."""
    steps = [i for i, _ in _acting(flow)]
    paired = zip(steps, expected.outcomes, observed.outcomes, strict=False)
    return list(takewhile(lambda triple: triple[1].verdict is not Verdict.UNKNOWN, paired))


def _port_agrees(expected: Port | None, observed: Port | None) -> bool:
    if isinstance(expected, PortClass):
        if isinstance(observed, PortClass):
            return expected.low <= observed.low and observed.high <= expected.high
        return observed is not None and observed in expected
    return expected == observed


def _quoted_agrees(expected: Outcome, observed: Outcome) -> bool:
    want, have = expected.quoted, observed.quoted
    if want is None or have is None:
        return want is have
    return (
        (want.src, want.dst) == (have.src, have.dst)
        and _port_agrees(want.sport, have.sport)
        and _port_agrees(want.dport, have.dport)
    )


def _ignored(flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch) -> list[frozenset[str]]:
    """Return for each outcome the fields that are not compared (see the module)."""
    ignored = []
    sent: Send | None = None
    coincided = False
    for (_, step), want, have in zip(_acting(flow), expected.outcomes, observed.outcomes, strict=False):
        if isinstance(step, Send):
            sent = step
        if isinstance(step, Send | Again):
            packet = None if sent is None else sent.packet
            coincided = (
                packet is not None
                and isinstance(want.sport, PortClass)
                and (have.src, have.sport) == (packet.src, packet.icmp_id if packet.is_icmp else packet.sport)
            )
            ignored.append(frozenset({"snat"}) if coincided else frozenset[str]())
        else:
            ignored.append(frozenset({"dnat"}) if coincided else frozenset[str]())
    return ignored


def _moved_ports(
    flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch, index: int
) -> Iterator[Mismatch]:
    """Check that later packets of a connection keep the port that the kernel picked for it.

    There is no check after a pause, an RST or another SYN, because the kernel may begin a new connection.
    """
    bound: Outcome | None = None
    outcomes = iter(zip(expected.outcomes, observed.outcomes, strict=True))
    for i, step in enumerate(flow.steps):
        if isinstance(step, Pause):
            bound = None
            continue
        want, have = next(outcomes)
        if isinstance(step, Again | Reply) and _restarts(step):
            bound = None
        elif isinstance(step, Send):
            bound = have if isinstance(want.sport, PortClass) else None
        elif isinstance(step, Again) and bound is not None and isinstance(want.sport, PortClass):
            yield from _moved(i, bound, have, index)


def _moved(step: int, before: Outcome, now: Outcome, index: int) -> Iterator[Mismatch]:
    if before.sport != now.sport:
        yield Mismatch(
            step=step,
            field="sport",
            expected="the port of the previous packet",
            observed="another one",
            branch=index,
        )


def _restarts(step: Again | Reply) -> bool:
    flags = step.flags
    if flags is None:
        return False
    return bool(flags & TcpFlag.RST) or (isinstance(step, Again) and bool(flags & TcpFlag.SYN))


def _differences(
    flow: Flow, expected: OutcomeBranch, observed: OutcomeBranch, index: int
) -> Iterator[Mismatch]:
    texts = (json.dumps(by_step, sort_keys=True) for by_step in _plain(flow, expected, observed))
    differences = _different_fields(*texts)
    if not differences:
        raise AssertionError(f"{flow.id}: no branch agrees, but no field differs from branch {index}")
    for step, field, want, have in differences:
        yield Mismatch(step=step, field=field, expected=want, observed=have, branch=index)


@lru_cache(maxsize=4096)
def _different_fields(wanted: str, observed: str) -> tuple[tuple[int, str, object, object], ...]:
    """Return step, name and both values of each field that differs, from the JSON text of :func:`_plain`.

    Flows to services of one kind mostly differ in the same fields, and deepdiff takes a millisecond.
    """
    from deepdiff import DeepDiff

    differences: list[tuple[int, str, object, object]] = []
    for items in DeepDiff(json.loads(wanted), json.loads(observed), view="tree").values():
        for item in items:
            step, field = item.path(output_format="list")
            differences.append((int(step), field, _present(item.t1), _present(item.t2)))
    return tuple(sorted(differences, key=lambda f: (f[0], _order(f[1]), f[1])))


def _present(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | dict | list) else None


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
    ignored: Sequence[frozenset[str]] = _ignored(flow, expected, observed)
    for (step, want, have), unseen in zip(_paired(flow, expected, observed), ignored, strict=False):
        wanted_fields, other = _readable(want, family), _readable(_with_classes(want, have), family)
        moved = want.verdict is not have.verdict
        keys = {"verdict"} if moved else (wanted_fields.keys() | other.keys()) - unseen
        different = {key for key in keys if wanted_fields.get(key) != other.get(key)}
        if different:
            wanted[str(step)] = {key: wanted_fields.get(key) for key in different}
            have_fields[str(step)] = {key: other.get(key) for key in different}
    return wanted, have_fields


def _with_classes(expected: Outcome, observed: Outcome) -> Outcome:
    for field in _PORTS:
        want = getattr(expected, field)
        if isinstance(want, PortClass) and _port_agrees(want, getattr(observed, field)):
            observed = replace(observed, sport=want) if field == "sport" else replace(observed, dport=want)
    if observed.quoted is not None and _quoted_agrees(expected, observed):
        observed = replace(observed, quoted=expected.quoted)
    return observed


def _readable(outcome: Outcome, family: Family) -> dict[str, object]:
    """Return the outcome as a flat dictionary, with port classes as text."""
    flat: dict[str, object] = {}
    for key, value in outcome_to_json(outcome, family).items():
        inner = value.items() if key == "quoted" and isinstance(value, dict) else ()
        flat |= {f"quoted.{name}": _port_text(v) for name, v in inner} or {key: _port_text(value)}
    return flat


def _port_text(value: object) -> object:
    return f"{value['min']}-{value['max']}" if isinstance(value, dict) else value
