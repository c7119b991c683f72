"""Changes of the TOS and the TTL as rules of one statement each.

* nft before 1.0.9 sets a part of a header to constants only: the DSCP, the ECN, the TTL. What depends on the
  old value takes a rule for each of them, and leaves their chain behind the one that matched.
* A statement on raw bytes may keep bits of them, but leaves IPv4's checksum as it was
  (``netlink_gen_payload_stmt``). IPv6 has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from translate.ir import Action, AddTtl, Family, Field, FieldTest, Interval, SetTos, SetTtl

__all__ = ["HeaderChange", "Step", "is_single", "steps"]

HeaderChange = SetTos | SetTtl | AddTtl

Case = tuple[tuple[FieldTest, ...], Action]
"""The tests of a rule that does something for one old value, and what it does."""

Step = Action | tuple[Case, ...]
"""One statement; or rules of which one may match."""

_BYTE: Final = 0xFF
_PARTS: Final = (0xFC, 0x03)
"""DSCP and ECN."""


def steps(action: HeaderChange, family: Family) -> Iterator[Step]:
    """Yield what does ``action``, one after the other; nothing for what changes no packet."""
    match action:
        case SetTtl():
            yield action
        case AddTtl(number=number):
            values = ((old, min(max(old + number, 0), _BYTE)) for old in range(_BYTE + 1))
            yield tuple(_case(Field.TTL, old, None, SetTtl(new)) for old, new in values if old != new)
        case SetTos(value=0, mask=0):
            return
        case SetTos(value=value, mask=mask):
            if family is Family.IP6 and not any(mask == p and not value & ~p for p in _PARTS):
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
    """Return whether each of the actions that change a header is a series of statements of one rule."""
    return not any(
        isinstance(step, tuple)
        for action in actions
        if isinstance(action, HeaderChange)
        for step in steps(action, family)
    )
