"""``-j CONNMARK`` as rules of one statement each.

* Reading ``ct mark`` ends the rule for a packet without a conntrack entry (``nft_ct_get_eval``). CONNMARK
  does nothing to such a packet, so this is correct if nothing follows in the rule.
* nft before 1.1.2, and the kernel before 6.13, combine a mark only with constants. ``mark & A ^ ctmark & B``
  takes one rule to clear bits, and one rule for each bit that is copied, to another place if it is shifted.
  A mark that is shifted in place takes two rules for each bit: one sets it, the other clears it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from translate.ir import (
    Action,
    ConnectionState,
    ConnSecmark,
    Field,
    FieldTest,
    Interval,
    LimitMss,
    Name,
    Proxy,
    RestoreMark,
    RestoreSocketMark,
    SaveMark,
    SetConnmark,
    SetMark,
    StripOptions,
    SynProxy,
    Template,
)

__all__ = [
    "ANSWERED_BY_PROXY",
    "NOT_LOOPBACK",
    "NOT_YET_TRACKED",
    "Connmark",
    "connmark_rules",
    "needs_separate_rules",
]

_ALL: Final = 0xFFFFFFFF
_HAS_ENTRY: Final = FieldTest(
    field=Field.CT_STATE,
    values=tuple(
        Interval.point(state)
        for state in (ConnectionState.ESTABLISHED, ConnectionState.RELATED, ConnectionState.NEW)
    ),
)
"""True of exactly the packets with a conntrack entry (``nf_ct_get``)."""

NOT_YET_TRACKED: Final = FieldTest(field=Field.CT_STATE, values=(Interval.point(ConnectionState.INVALID),))
"""True, in ``raw``, of packets without a connection, a template or NOTRACK.

``xt_ct_target`` changes only these. ``nft_ct_set_zone_eval`` also changes packets that are UNTRACKED.
"""

NOT_LOOPBACK: Final = FieldTest(field=Field.OIF, values=(Name("lo"),), negated=True)
"""``rt mtu`` gives 536 for an MTU above 65,535 bytes, like that of lo (``get_tcpmss``)."""

ANSWERED_BY_PROXY: Final = FieldTest(
    field=Field.TCP_FLAGS, mask=0x17, values=(Interval.point(0x02), Interval.point(0x10))
)
"""The test for the packets that ``synproxy_tg4`` takes. ``nft_synproxy_eval`` takes others, too."""

Connmark = SetConnmark | SaveMark | RestoreMark

_LAST: Final = ConnSecmark | Template | LimitMss | StripOptions | SynProxy | RestoreSocketMark
"""Actions that end the rule in nftables for packets that they leave as they are."""


def needs_separate_rules(actions: Sequence[Action]) -> bool:
    """Return whether an action needs separate rules, or is not last in its rule although it must be."""
    if any(isinstance(action, Proxy) for action in actions):
        return True
    return any(isinstance(action, _LAST) for action in actions[:-1]) or any(
        isinstance(action, SetConnmark | SaveMark | RestoreMark)
        and (index < len(actions) - 1 or len(list(connmark_rules(action))) > 1)
        for index, action in enumerate(actions)
    )


def connmark_rules(action: Connmark) -> Iterator[tuple[tuple[FieldTest, ...], Action]]:
    """Yield the rules for ``action``, each as its tests and its only action.

    Each copies a mark under a mask only, or changes a mark by constants.
    """
    match action:
        case SetConnmark(value=value, mask=mask, shift=shift):
            yield (), SetConnmark(value, mask)
            if shift:
                yield from _in_place(shift)
        case SaveMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            if ctmask == _ALL and not shift:
                yield (), action
                return
            moved = _moved(nfmask, shift)
            if ctmask or not moved:
                yield (), SetConnmark(0, ctmask)
            for bit, to in moved:
                yield (_has_bit(Field.MARK, bit),), SetConnmark(to, 0)
        case RestoreMark(nfmask=nfmask, ctmask=ctmask, shift=shift):
            if nfmask == _ALL and not shift:
                yield (), action
                return
            moved = _moved(ctmask, shift)
            if nfmask or not moved:
                yield (_HAS_ENTRY,), SetMark(0, nfmask)
            for bit, to in moved:
                yield (_has_bit(Field.CT_MARK, bit),), SetMark(to, 0)
        case _:
            assert_never(action)


def _in_place(shift: int) -> Iterator[tuple[tuple[FieldTest, ...], Action]]:
    """Yield the rules that shift the connection's mark; a bit is read before it is written."""
    moved = _moved(_ALL, shift)
    for bit, to in reversed(moved) if shift > 0 else moved:
        yield (_has_bit(Field.CT_MARK, bit),), SetConnmark(to, to)
        yield (_has_bit(Field.CT_MARK, bit, there=False),), SetConnmark(0, to)
    yield (), SetConnmark(0, _ALL ^ sum(to for _, to in moved))


def _moved(mask: int, shift: int) -> list[tuple[int, int]]:
    """Return the bits of a mask that a shift does not drop, each with the bit that it becomes."""
    pairs = [(bit, bit << shift if shift >= 0 else bit >> -shift) for bit in _bits(mask)]
    return [(bit, to) for bit, to in pairs if 0 < to <= _ALL]


def _has_bit(field: Field, bit: int, *, there: bool = True) -> FieldTest:
    return FieldTest(field=field, values=(Interval.point(bit if there else 0),), mask=bit)


def _bits(mask: int) -> Iterator[int]:
    return (1 << n for n in range(32) if mask >> n & 1)
