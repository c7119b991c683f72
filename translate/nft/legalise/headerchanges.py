"""Changes of the TOS, the TTL and the flags of TCP as rules of one statement each.

* nft before 1.0.9 sets a part of a header (DSCP, ECN, TTL, flags) only to constants. A change that depends on
  the old value becomes a chain with one rule for each old value, which a packet leaves after the rule that
  matched.
* A statement on raw bytes can keep some bits, but does not update the checksum of IPv4
  (``netlink_gen_payload_stmt``). IPv6 has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from translate.ir import Action, AddTtl, Family, Field, FieldTest, Interval, SetTcpFlags, SetTos, SetTtl

__all__ = ["HeaderChange", "Step", "is_single", "steps"]

HeaderChange = SetTos | SetTcpFlags | SetTtl | AddTtl

Case = tuple[tuple[FieldTest, ...], Action]
"""The tests of a rule for one old value, and its action."""

Step = Action | tuple[Case, ...]
"""One statement, or rules of which at most one matches."""

_BYTE: Final = 0xFF
_PARTS: Final = (0xFC, 0x03)
"""DSCP and ECN."""


def steps(action: HeaderChange, family: Family) -> Iterator[Step]:
    """Yield the steps that do ``action``, in order; none for an action that changes no packet."""
    match action:
        case SetTtl():
            yield action
        case AddTtl(number=number):
            values = ((old, min(max(old + number, 0), _BYTE)) for old in range(_BYTE + 1))
            yield tuple(_case(Field.TTL, old, None, SetTtl(new)) for old, new in values if old != new)
        case SetTcpFlags(mask=0xFF):
            yield action
        case SetTcpFlags(value=value, mask=mask):
            values = ((old, old & ~mask ^ value) for old in range(_BYTE + 1))
            yield tuple(
                _case(Field.TCP_FLAGS, old, None, SetTcpFlags(new, _BYTE))
                for old, new in values
                if old != new
            )
        case SetTos(value=0, mask=0):
            return
        case SetTos(value=value, mask=mask):
            if family is Family.IP6 and any(mask & p != p and (mask | value) & p for p in _PARTS):
                yield action
                return
            for part in _PARTS:
                if mask & part == part:
                    yield SetTos(value & part, part)
                elif (mask | value) & part:
                    lowest = part & -part
                    changed = ((old, old & ~mask & part ^ value & part) for old in range(0, part + 1, lowest))
                    yield tuple(
                        _case(Field.TOS, old, part, SetTos(new, part)) for old, new in changed if old != new
                    )


def _case(field: Field, old: int, mask: int | None, change: Action) -> Case:
    return (FieldTest(field=field, values=(Interval.point(old),), mask=mask),), change


def is_single(actions: Sequence[Action], family: Family) -> bool:
    """Return whether each of the actions that change a header can be written as statements of one rule."""
    return not any(
        isinstance(step, tuple)
        for action in actions
        if isinstance(action, HeaderChange)
        for step in steps(action, family)
    )
