"""What a Program does to one packet, written down a second time, for tests of the passes only.

Exact: the result is a distribution over (how the chain ended, the mark and conntrack state then).
Knows nothing of ``translate.passes``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from translate.ir import (
    RANDOM_RANGE,
    Accept,
    Action,
    AnyOf,
    Apply,
    Choose,
    ConnectionState,
    Dnat,
    Drop,
    Field,
    FieldTest,
    Goto,
    Interval,
    Jump,
    Lookup,
    Masquerade,
    Name,
    NoTrack,
    Policy,
    Program,
    Random,
    Redirect,
    Reject,
    Return,
    SetMark,
    Snat,
    Test,
)


@dataclass(frozen=True)
class State:
    """A packet: a number or a name per field; a field that is not there is absent."""

    fields: tuple[tuple[Field, int | str], ...]

    @classmethod
    def of(cls, fields: Mapping[Field, int | str]) -> State:
        return cls(tuple(sorted(fields.items(), key=lambda item: item[0].name)))

    def get(self, field: Field) -> int | str | None:
        return dict(self.fields).get(field)

    def put(self, field: Field, value: int) -> State:
        return State.of({**dict(self.fields), field: value})


Ending = tuple[Action | Policy | None, State]
Distribution = dict[Ending, Fraction]


def holds(test: FieldTest | AnyOf, state: State) -> bool:
    if isinstance(test, AnyOf):
        return any(holds(part, state) for part in test.tests) is not test.negated
    value = state.get(test.field)
    if value is None:
        return False
    if isinstance(value, str):
        found = any(v.matches(value) for v in test.values if isinstance(v, Name))
    else:
        masked = value if test.mask is None else value & test.mask
        found = any(masked in v for v in test.values if isinstance(v, Interval))
    return found is not test.negated


def chance(tests: tuple[Test, ...], state: State) -> Fraction:
    share = Fraction(1)
    for test in tests:
        if isinstance(test, Random):
            p = Fraction(min(test.numerator, RANDOM_RANGE), RANDOM_RANGE)
            share *= 1 - p if test.negated else p
        else:
            assert isinstance(test, FieldTest | AnyOf)
            if not holds(test, state):
                return Fraction(0)
    return share


def run(program: Program, base: str, state: State) -> Distribution:
    chain = program.chain(base)
    total: Counter[Ending] = Counter()
    for (end, after), share in _chain(program, base, state).items():
        total[chain.policy if end is None else end, after] += share
    return dict(total)


def _chain(program: Program, name: str, state: State) -> Distribution:
    """Endings inside the chain; None: control comes back to the caller."""
    total: Counter[Ending] = Counter()
    alive: Counter[State] = Counter({state: Fraction(1)})
    for statement in program.chain(name).statements:
        going: Counter[State] = Counter()
        for now, share in alive.items():
            passed = share * chance(statement.tests, now)
            if passed != share:
                going[now] += share - passed
            if not passed:
                continue
            ways: list[tuple[tuple[Action, ...], Fraction]]
            match statement:
                case Apply(actions=actions):
                    ways = [(actions, Fraction(1))]
                case Choose(branches=branches):
                    ways = [(b.actions, Fraction(b.weight, RANDOM_RANGE)) for b in branches]
                case Lookup(fields=fields, entries=entries):
                    hit = [
                        e.actions
                        for e in entries
                        if all(
                            holds(FieldTest(field=f, values=(v,)), now)
                            for f, v in zip(fields, e.key, strict=True)
                        )
                    ]
                    assert len(hit) <= 1, "keys overlap"
                    ways = [(hit[0] if hit else (), Fraction(1))]
            for actions, part in ways:
                for (end, after), inner in _actions(program, actions, now).items():
                    if end == "next":
                        going[after] += passed * part * inner
                    else:
                        total[end, after] += passed * part * inner
        alive = going
    for now, share in alive.items():
        total[None, now] += share
    return dict(total)


def _actions(program: Program, actions: tuple[Action, ...], state: State) -> dict:
    for action in actions:
        match action:
            case SetMark(value=value, mask=mask):
                mark = state.get(Field.MARK)
                assert isinstance(mark, int)
                state = state.put(Field.MARK, (mark & ~mask & 0xFFFFFFFF) ^ value)
            case NoTrack():
                state = state.put(Field.CT_STATE, int(ConnectionState.UNTRACKED))
            case Accept() | Drop() | Reject() | Dnat() | Snat() | Masquerade() | Redirect():
                return {(action, state): Fraction(1)}
            case Return():
                return {(None, state): Fraction(1)}
            case Goto(chain=name):
                return _chain(program, name, state)
            case Jump(chain=name):
                inner = _chain(program, name, state)
                return {("next" if end is None else end, s): p for (end, s), p in inner.items()}
    return {("next", state): Fraction(1)}


def distance(a: Distribution, b: Distribution) -> Fraction:
    """The largest difference of two distributions in the share of one ending."""
    return max((abs(a.get(k, Fraction(0)) - b.get(k, Fraction(0))) for k in {*a, *b}), default=Fraction(0))
