"""``-m conntrack`` and ``-m state``: the connection that a packet belongs to.

The tests follow two rules of ``conntrack_mt`` (``xt_conntrack.c``):

- ``--ctstate`` is one list over two fields: SNAT and DNAT are bits of the entry's status, the rest
  are states. Negation applies to the list as a whole.
- For a packet without an entry only ``--ctstate`` counts: if it holds, every other option is ignored (``if
  (ct == NULL) return info->match_flags & XT_CONNTRACK_STATE``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from translate.ir import (
    AnyOf,
    ConnectionState,
    ConnectionStatus,
    Field,
    FieldTest,
    Interval,
    Test,
)
from translate.read.extensions.declaration import (
    Context,
    MatchExtension,
    Options,
    OptionSpec,
    between,
    first_named,
    parse_range,
)
from translate.read.spelling.address import parse_resolved_mask
from translate.read.spelling.errors import OptionError
from translate.read.spelling.names import protocol_number
from translate.read.spelling.ports import parse_resolved_range

__all__ = ["CONNTRACK", "STATE"]

_STATES: Final = {state.name: state for state in ConnectionState}
_IN_ORDER: Final = ("INVALID", "NEW", "ESTABLISHED", "RELATED", "UNTRACKED")
_VIRTUAL: Final = {"SNAT": ConnectionStatus.SNAT, "DNAT": ConnectionStatus.DNAT}
_STATUSES: Final = {
    "NONE": 0,
    "EXPECTED": ConnectionStatus.EXPECTED,
    "SEEN_REPLY": ConnectionStatus.SEEN_REPLY,
    "ASSURED": ConnectionStatus.ASSURED,
    "CONFIRMED": ConnectionStatus.CONFIRMED,
}
_ENTRYLESS: Final = frozenset({ConnectionState.INVALID, ConnectionState.UNTRACKED})
_ADDRESSES: Final = {
    "--ctorigsrc": Field.CT_ORIGINAL_SADDR,
    "--ctorigdst": Field.CT_ORIGINAL_DADDR,
    "--ctreplsrc": Field.CT_REPLY_SADDR,
    "--ctrepldst": Field.CT_REPLY_DADDR,
}
_PORTS: Final = {
    "--ctorigsrcport": Field.CT_ORIGINAL_SPORT,
    "--ctorigdstport": Field.CT_ORIGINAL_DPORT,
    "--ctreplsrcport": Field.CT_REPLY_SPORT,
    "--ctrepldstport": Field.CT_REPLY_DPORT,
}
_MOST_SECONDS: Final = (1 << 32) - 1
_DIRECTIONS: Final = {"ORIGINAL": 0, "REPLY": 1}


def _names(text: str, allowed: Iterable[str], *, option: int, what: str) -> list[str]:
    """Return the names in a list, which may be abbreviated (``conntrack_ps_state``)."""
    names = []
    offset = 0
    for name in text.split(","):
        full_name = first_named(allowed, name) if name else None
        if full_name is None:
            raise OptionError(f'unknown {what} "{name}"', option=option, offset=offset)
        names.append(full_name)
        offset += len(name) + 1
    return names


def _points(states: set[ConnectionState]) -> tuple[Interval, ...]:
    return tuple(Interval.point(int(state)) for state in sorted(states))


def _state_test(text: str, *, negated: bool, option: int, virtual: bool) -> tuple[Test, bool]:
    """Return the test, and True if a packet without a conntrack entry can pass it."""
    allowed = (*_IN_ORDER, *(_VIRTUAL if virtual else ()))
    names = _names(text, allowed, option=option, what="connection state")
    states = {_STATES[name] for name in names if name in _STATES}
    bits = sorted({_VIRTUAL[name] for name in names if name in _VIRTUAL})
    listed = _ENTRYLESS & states
    entryless = listed != _ENTRYLESS if negated else bool(listed)
    if not bits:
        return FieldTest(field=Field.CT_STATE, values=_points(states), negated=negated), entryless
    parts = [FieldTest(field=Field.CT_STATE, values=_points(states))] if states else []
    parts += [
        FieldTest(field=Field.CT_STATUS, values=(Interval.point(int(bit)),), mask=int(bit)) for bit in bits
    ]
    if len(parts) == 1 and not negated:
        return parts[0], entryless
    return AnyOf(tests=tuple(parts), negated=negated), entryless


def _entry_test(index: int, options: Options, context: Context) -> FieldTest:
    option = options[index]
    text = option.arguments[0]
    negated = option.negated
    if option.name in _ADDRESSES:
        parsed = parse_resolved_mask(context.family, text, option=index)
        return parsed.test(_ADDRESSES[option.name], negated=negated)
    if option.name in _PORTS:
        ports = parse_resolved_range(text, option=index)
        return between(_PORTS[option.name], ports.low, ports.high, negated=negated, family=context.family)
    if option.name == "--ctproto":
        number = protocol_number(text)
        if number is None:
            raise OptionError(f'unknown protocol "{text}"', option=index)
        return FieldTest(field=Field.CT_PROTO, values=(Interval.point(number),), negated=negated)
    if option.name == "--ctdir":
        direction = _DIRECTIONS.get(text.upper())
        if direction is None:
            raise OptionError(f'unknown direction "{text}"', option=index, hint="ORIGINAL or REPLY")
        return FieldTest(field=Field.CT_DIRECTION, values=(Interval.point(direction),))
    if option.name == "--ctexpire":
        low, high = parse_range(text, _MOST_SECONDS, option=index)
        return between(Field.CT_EXPIRES, low, high, negated=negated, family=context.family)
    mask = 0
    for name in _names(text, _STATUSES, option=index, what="connection status"):
        mask |= _STATUSES[name]
    # "any of these bits"; NONE adds no bit, so NONE alone never holds (conntrack_ps_status)
    return FieldTest(field=Field.CT_STATUS, values=(Interval.point(0),), mask=mask, negated=not negated)


def _conntrack(options: Options, context: Context) -> tuple[Test, ...]:
    if not options:
        raise OptionError("conntrack needs at least one option")
    tests: list[Test] = []
    entryless = False
    state = options.find("--ctstate")
    if state is not None:
        index, option = state
        test, entryless = _state_test(option.arguments[0], negated=option.negated, option=index, virtual=True)
        tests.append(test)
    without_entry = FieldTest(field=Field.CT_STATE, values=_points(set(_ENTRYLESS)))
    for index, option in enumerate(options):
        if option.name == "--ctstate":
            continue
        entry = _entry_test(index, options, context)
        tests.append(AnyOf(tests=(without_entry, entry)) if entryless else entry)
    return tuple(tests)


def _state(options: Options, _context: Context) -> tuple[Test, ...]:
    index, option = options.need("--state", "state")
    test, _ = _state_test(option.arguments[0], negated=option.negated, option=index, virtual=False)
    return (test,)


CONNTRACK: Final = MatchExtension(
    name="conntrack",
    options=(
        OptionSpec(name="--ctstate", invertible=True),
        OptionSpec(name="--ctproto", invertible=True),
        *(OptionSpec(name=name, invertible=True) for name in (*_ADDRESSES, *_PORTS)),
        OptionSpec(name="--ctstatus", invertible=True),
        OptionSpec(name="--ctexpire", invertible=True),
        OptionSpec(name="--ctdir"),
    ),
    meaning=_conntrack,
)
"""``-m conntrack`` (``xt_conntrack``)."""

STATE: Final = MatchExtension(
    name="state", options=(OptionSpec(name="--state", invertible=True),), meaning=_state
)
"""``-m state``, the older name for ``--ctstate`` of conntrack (``xt_state``)."""
