"""The effect of a Program on one packet, implemented a second time for tests of the passes.

Exact: the result is a distribution over (how the chain ended, the marks and conntrack state then).
Knows nothing of ``translate.passes``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from translate.ir import (
    RANDOM_RANGE,
    Accept,
    Account,
    Action,
    AddTtl,
    AnyOf,
    Apply,
    Choose,
    ConnectionLimit,
    ConnectionState,
    Dnat,
    Drop,
    Field,
    FieldTest,
    Goto,
    HashLimit,
    Interval,
    Jump,
    Limit,
    LimitMss,
    Lookup,
    Masquerade,
    Name,
    Netmap,
    NoTrack,
    Nth,
    Policy,
    Program,
    Proxy,
    Queue,
    Quota,
    Random,
    Recent,
    RecentMode,
    Redirect,
    Reject,
    RestoreMark,
    Return,
    SaveMark,
    SetConnmark,
    SetDirection,
    SetMark,
    SetTos,
    SetTtl,
    SideEffect,
    Snat,
    StripOptions,
    Template,
    Test,
)


@dataclass(frozen=True)
class State:
    """A packet: a number or a name for each field that the packet has."""

    fields: tuple[tuple[Field, int | str], ...]
    memory: tuple[tuple[str, int], ...] = ()
    """The state of counters, and the addresses in lists; both are empty at first."""

    @classmethod
    def of(cls, fields: Mapping[Field, int | str]) -> State:
        return cls(tuple(sorted(fields.items(), key=lambda item: item[0].name)))

    def get(self, field: Field) -> int | str | None:
        return dict(self.fields).get(field)

    def put(self, field: Field, value: int) -> State:
        return replace(State.of({**dict(self.fields), field: value}), memory=self.memory)

    def recall(self, name: str) -> int | None:
        return dict(self.memory).get(name)

    def remember(self, name: str, value: int) -> State:
        return replace(self, memory=tuple(sorted({**dict(self.memory), name: value}.items())))


Ending = tuple[Action | Policy | Literal["next"] | None, State]
Distribution = dict[Ending, Fraction]


def holds(test: FieldTest | AnyOf, state: State) -> bool:
    if isinstance(test, AnyOf):
        return any(holds(part, state) for part in test.tests) is not test.negated
    value = state.get(test.field)
    if value is None:
        return False
    if isinstance(value, str):
        inside = any(v.matches(value) for v in test.values if isinstance(v, Name))
    else:
        masked = value if test.mask is None else value & test.mask
        inside = any(masked in v for v in test.values if isinstance(v, Interval))
    return inside is not test.negated


def results(test: Test, state: State, place: str) -> list[tuple[Fraction, State, bool]]:
    """Return every result of a test with its probability, and the state after it."""
    match test:
        case FieldTest() | AnyOf():
            return [(Fraction(1), state, holds(test, state))]
        case Random():
            p = Fraction(min(test.numerator, RANDOM_RANGE), RANDOM_RANGE)
            return [(p, state, not test.negated), (1 - p, state, test.negated)]
        case Nth():
            # The counter outlives packets: where it stands at first is not known.
            known = state.recall(place)
            stands = range(test.every) if known is None else (known,)
            return [
                (
                    Fraction(1, len(stands)),
                    state.remember(place, (n + 1) % test.every),
                    (n == test.packet) is not test.negated,
                )
                for n in stands
            ]
        case Limit():
            # No time passes between the packets.
            left = state.recall(test.bucket)
            left = test.burst if left is None else left
            assert isinstance(left, int)
            return [(Fraction(1), state.remember(test.bucket, max(0, left - 1)), left > 0)]
        case HashLimit() | ConnectionLimit() | Quota():
            raise NotImplementedError
        case Recent():
            side = Field.SADDR if test.side is SetDirection.SRC else Field.DADDR
            address = state.get(side)
            assert isinstance(address, int)
            key = " ".join(
                ("list", test.name, *(str(state.get(f)) for f in test.key), str(address & test.mask))
            )
            listed = bool(state.recall(key))
            match test.mode:
                case RecentMode.SET:
                    listed, state = True, state.remember(key, True)
                case RecentMode.REMOVE:
                    state = state.remember(key, False)
            return [(Fraction(1), state, listed is not test.negated)]
        case Account():
            return [(Fraction(1), state, True)]
    raise AssertionError(test)


def passed(
    tests: tuple[Test, ...], state: State, place: str
) -> tuple[list[tuple[Fraction, State]], list[tuple[Fraction, State]]]:
    """Return the branches in which all tests held, and those in which one did not, with shares and states."""
    alive = [(Fraction(1), state)]
    failed: list[tuple[Fraction, State]] = []
    for number, test in enumerate(tests):
        going: list[tuple[Fraction, State]] = []
        for share, now in alive:
            for part, after, ok in results(test, now, f"{place}.{number}"):
                if part:
                    (going if ok else failed).append((share * part, after))
        alive = going
    return alive, failed


def run(program: Program, base: str, state: State) -> Distribution:
    chain = program.chain(base)
    total: defaultdict[Ending, Fraction] = defaultdict(Fraction)
    for (end, after), share in _chain(program, base, state).items():
        total[chain.policy if end is None else end, after] += share
    return dict(total)


def _chain(program: Program, name: str, state: State) -> Distribution:
    """Return the distribution of ends in the chain; None is a return to the caller."""
    total: defaultdict[Ending, Fraction] = defaultdict(Fraction)
    alive: dict[State, Fraction] = {state: Fraction(1)}
    for statement in program.chain(name).statements:
        going: defaultdict[State, Fraction] = defaultdict(Fraction)
        matching: defaultdict[State, Fraction] = defaultdict(Fraction)
        for before, share in alive.items():
            place = f"line {statement.origin.line} {statement.origin.text}"
            matched, failed = passed(statement.tests, before, place)
            for part, after in failed:
                going[after] += share * part
            for part, after in matched:
                matching[after] += share * part
        for now, share in matching.items():
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
                        going[after] += share * part * inner
                    else:
                        total[end, after] += share * part * inner
        alive = going
    for now, share in alive.items():
        total[None, now] += share
    return dict(total)


def _actions(program: Program, actions: tuple[Action, ...], state: State) -> Distribution:
    for action in actions:
        match action:
            case SetMark(value=value, mask=mask):
                mark = state.get(Field.MARK)
                assert isinstance(mark, int)
                state = state.put(Field.MARK, (mark & ~mask & 0xFFFFFFFF) ^ value)
            case SetConnmark() | SaveMark() | RestoreMark():
                state = _connmark(action, state)
            case SetTos(value=value, mask=mask):
                tos = state.get(Field.TOS)
                assert isinstance(tos, int)
                state = state.put(Field.TOS, (tos & ~mask & 0xFF) ^ value)
            case SetTtl(value=value):
                state = state.put(Field.TTL, value)
            case AddTtl(number=number):
                ttl = state.get(Field.TTL)
                assert isinstance(ttl, int)
                state = state.put(Field.TTL, min(max(ttl + number, 0), 255))
            case SideEffect() | LimitMss() | StripOptions():
                pass
            case Template():
                if state.get(Field.CT_STATE) == ConnectionState.INVALID:
                    state = state.put(Field.CT_STATE, int(ConnectionState.NEW))
            case NoTrack():
                state = state.put(Field.CT_STATE, int(ConnectionState.UNTRACKED))
            case (
                Accept()
                | Drop()
                | Reject()
                | Proxy()
                | Queue()
                | Dnat()
                | Snat()
                | Masquerade()
                | Redirect()
                | Netmap()
            ):
                return {(action, state): Fraction(1)}
            case Return():
                return {(None, state): Fraction(1)}
            case Goto(chain=name):
                return _chain(program, name, state)
            case Jump(chain=name):
                inner = _chain(program, name, state)
                return {("next" if end is None else end, s): p for (end, s), p in inner.items()}
            case _:
                raise AssertionError(action)
    return {("next", state): Fraction(1)}


def _connmark(action: SetConnmark | SaveMark | RestoreMark, state: State) -> State:
    mark, connection = state.get(Field.MARK), state.get(Field.CT_MARK)
    assert isinstance(mark, int)
    if connection is None:
        return state
    assert isinstance(connection, int)
    match action:
        case SetConnmark(value=value, mask=mask):
            return state.put(Field.CT_MARK, (connection & ~mask & 0xFFFFFFFF) ^ value)
        case SaveMark(nfmask=nfmask, ctmask=ctmask):
            return state.put(Field.CT_MARK, (connection & ~ctmask & 0xFFFFFFFF) ^ (mark & nfmask))
        case RestoreMark(nfmask=nfmask, ctmask=ctmask):
            return state.put(Field.MARK, (mark & ~nfmask & 0xFFFFFFFF) ^ (connection & ctmask))


def distance(a: Distribution, b: Distribution) -> Fraction:
    """Return the greatest difference between two distributions in the probability of one end."""
    return max((abs(a.get(k, Fraction(0)) - b.get(k, Fraction(0))) for k in {*a, *b}), default=Fraction(0))
