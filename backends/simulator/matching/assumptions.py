"""Assumptions about hidden parts of rules; every outcome names the assumptions that it depends on.

A hidden part makes two branches without probabilities. The probability of an outcome is therefore its share
*if its assumptions hold*: the probabilities of the outcomes whose assumptions are true sum to 1, whatever the
hidden parts are. An assumption that does not change the outcome is removed (:func:`without_needless`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Generic, TypeVar

from backends.model.outcome import Assumption, Outcome
from backends.simulator.chance.chooser import Chance
from backends.simulator.matching.fields import reader
from backends.simulator.matching.undecided import Undecided
from backends.simulator.matching.view import View
from translate.dataclass import dataclass, field, replace
from translate.ir import Field, Hidden, Rule, format_address

__all__ = ["Assumptions", "Run", "added_up", "without_needless"]

T = TypeVar("T")

_PREPOSITION: Final = {Field.IIF: "in", Field.OIF: "out", Field.SADDR: "from", Field.DADDR: "to"}

_MOST_ASSUMED: Final = 8
"""The maximum number of unmodelled matches whose result is assumed; with more, the outcome is unknown."""


@dataclass(slots=True)
class Assumptions:
    """The assumptions of one run of a flow about the hidden parts of rules, each made once."""

    chance: Chance
    denied: Assumption | None = None
    """The assumption because of which the last failed rule did not match."""
    made: dict[tuple[object, ...], Assumption] = field(default_factory=dict)
    visits: Counter[object] = field(default_factory=Counter)
    """The number of packets that reached each rule with a match that is not modelled."""

    def begin(self, chance: Chance) -> None:
        """Forget all assumptions, for another run."""
        self.chance, self.denied = chance, None
        self.made.clear()
        self.visits.clear()

    def matches(self, rule: Rule, place: object, view: View) -> bool:
        """Return whether the rule at ``place`` matches, given that its known tests hold.

        Raises Undecided if it does and its action is hidden.
        """
        line, reasons = rule.origin.line, tuple(part.reason for part in rule.unknown)
        hides = {part.hides for part in rule.unknown}
        if Hidden.RULES in hides:
            # The same for all packets of a flow: unknown rules may depend on anything.
            leaves = Assumption(line=line, hidden=reasons, matches=False)
            assumed = self._assume((place,), (leaves, replace(leaves, matches=True)))
            if self._denied(assumed):
                return False
        elif Hidden.TESTS in hides:
            fields = tuple(dict.fromkeys(f for part in rule.unknown for f in part.fields))
            values = tuple(reader(f)(view) for f in fields)
            about = " ".join(_value(f, v, view) for f, v in zip(fields, values, strict=True) if v)
            if any(part.extension and not part.fields for part in rule.unknown):
                # A match such as limit can have another result for every packet.
                if len(self.made) >= _MOST_ASSUMED:
                    raise Undecided(f"line {line}: {'; '.join(reasons)}; also for packets before this one")
                self.visits[place] += 1
                values = (*values, self.visits[place])
                about = f"{about} packet {self.visits[place]} that comes to it".lstrip()
            applies = Assumption(line=line, hidden=reasons, matches=True, packet=about)
            assumed = self._assume((place, *values), (applies, replace(applies, matches=False)))
            if self._denied(assumed):
                return False
        if hides - {Hidden.TESTS, Hidden.EFFECT}:
            raise Undecided(f"line {line}: {'; '.join(reasons)}" if line else "; ".join(reasons))
        return True

    def _denied(self, assumed: Assumption) -> bool:
        self.denied = None if assumed.matches else assumed
        return not assumed.matches

    def _assume(self, key: tuple[object, ...], either: tuple[Assumption, Assumption]) -> Assumption:
        assumption = self.made.get(key)
        if assumption is None:
            assumption = self.made[key] = self.chance.assume(either)
        return assumption


def _value(field: Field, value: object, view: View) -> str:
    family = view.skb.packet.family
    text = format_address(family, value) if isinstance(value, int) else value
    return f"{_PREPOSITION[field]} {text}"


@dataclass(frozen=True, slots=True)
class Run(Generic[T]):
    """One run of a flow: its probability if its assumptions hold, its outcomes, and its result."""

    probability: Fraction
    assuming: tuple[Assumption, ...]
    outcomes: tuple[Outcome, ...]
    result: T


def added_up(runs: Sequence[Run[None]]) -> list[Run[None]]:
    """Join equal runs, adding their probabilities, and runs that differ only in one assumption."""
    while True:
        by_key: dict[tuple[tuple[Outcome, ...], frozenset[Assumption]], Run[None]] = {}
        for run in runs:
            key = run.outcomes, frozenset(run.assuming)
            same = by_key.get(key)
            by_key[key] = (
                run if same is None else replace(same, probability=same.probability + run.probability)
            )
        joined = without_needless(tuple(by_key.values()))
        if len(joined) == len(runs):
            return joined
        runs = joined


def without_needless(runs: Sequence[Run[T]]) -> list[Run[T]]:
    """Join runs that differ only in one assumption; the run in which the rule matches is kept.

    Sound for two runs of equal outcomes and probability: if their other assumptions hold, exactly one of the
    two opposite assumptions holds, so exactly one of the two runs counts.
    """
    kept = list(runs)
    joined = True
    while joined:
        joined = False
        places: dict[object, list[int]] = {}
        for place, run in enumerate(kept):
            places.setdefault(_key(run, run.assuming), []).append(place)
        merged: set[int] = set()
        for place, run in enumerate(kept):
            if place in merged:
                continue
            for assumption in run.assuming:
                other = replace(assumption, matches=not assumption.matches)
                key = _key(run, tuple(other if a == assumption else a for a in run.assuming))
                partner = next((p for p in places.get(key, ()) if p > place and p not in merged), None)
                if partner is not None:
                    merged.add(partner)
                    stays = run if assumption.matches else kept[partner]
                    less = tuple(a for a in stays.assuming if a not in (assumption, other))
                    kept[place] = replace(stays, assuming=less)
                    joined = True
                    break
        kept = [run for place, run in enumerate(kept) if place not in merged]
    return kept


def _key(run: Run[T], assuming: tuple[Assumption, ...]) -> object:
    return frozenset(assuming), run.outcomes, run.probability
