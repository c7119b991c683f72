"""Masks of all bits for tests that nft would otherwise join or misread.

*Payloads that nft joins.* nft 1.0.6 joins two matches on neighbouring bytes into one (``payload_try_merge``
in ``src/rule.c``). Two negated matches become "not both", although each must hold (1.1.3 leaves them alone).
It also joins matches across a counter, a label that is set or a set that packets fill (1.0.6), or ``numgen
inc`` (still in 1.1.3), which then sees other packets. A match with a mask of all bits is not joined.

*Tests of a connection's protocol.* After ``ct original protocol udp`` nft assumes that the packet itself is
UDP (``ct_expr_pctx_update``). It omits the protocol match that ``udp sport`` implies, so that the type and
code of an ICMP error are compared with the port, and it refuses ``icmp type``. With a mask it does neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from translate.dataclass import replace
from translate.ir import (
    Account,
    ConnectionLimit,
    ConnLabel,
    Field,
    FieldTest,
    HashLimit,
    Interval,
    Limit,
    Nth,
    Quota,
    Recent,
    Test,
)

__all__ = ["with_masks"]

_NEIGHBOURS: Final = {
    Field.SPORT: Field.DPORT,
    Field.DPORT: Field.SPORT,
    Field.ICMP_TYPE: Field.ICMP_CODE,
    Field.ICMP_CODE: Field.ICMP_TYPE,
}
_ALL_BITS: Final = {
    Field.SPORT: 0xFFFF,
    Field.DPORT: 0xFFFF,
    Field.ICMP_TYPE: 0xFF,
    Field.ICMP_CODE: 0xFF,
    Field.CT_PROTO: 0xFF,
}
_REMEMBERS: Final = (Nth, Limit, HashLimit, ConnectionLimit, Quota, Recent, Account)


def with_masks(tests: Sequence[Test]) -> tuple[Test, ...]:
    """Return the tests of a rule, in order, with masks of all bits where nft needs them."""
    return tuple(_kept(tests))


def _kept(tests: Sequence[Test]) -> Iterator[Test]:
    for index, test in enumerate(tests):
        if not isinstance(test, FieldTest) or test.mask is not None or test.field not in _ALL_BITS:
            yield test
        elif test.field is Field.CT_PROTO or any(
            _joined(tests[before], test, tests[before + 1 : index]) for before in range(index)
        ):
            yield replace(test, mask=_ALL_BITS[test.field])
        else:
            yield test


def _joined(first: Test, second: FieldTest, between: Sequence[Test]) -> bool:
    """Return whether nft would join two tests that must stay separate."""
    return (
        isinstance(first, FieldTest)
        and first.field is _NEIGHBOURS.get(second.field)
        and first.negated is second.negated
        and _is_single(first)
        and _is_single(second)
        and (second.negated or any(map(_changes, between)))
    )


def _changes(test: Test) -> bool:
    """Return whether it matters which packets reach a test."""
    return isinstance(test, _REMEMBERS) or (isinstance(test, ConnLabel) and test.add)


def _is_single(test: FieldTest) -> bool:
    """Return whether a test compares with one value."""
    return len(test.values) == 1 and isinstance(test.values[0], Interval) and test.values[0].is_point
