"""Tests: the conditions under which a rule matches a packet.

The extensions of iptables are syntax; their meaning is a few kinds of test over the table of fields.
A rule matches when *all* its tests hold. They are evaluated in order, which matters only to tests with
state or chance: :class:`Random`, :class:`Nth`, :class:`Recent`, :class:`Limit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from translate.ir.fields import Field
from translate.ir.values import Value

__all__ = [
    "RANDOM_RANGE",
    "Account",
    "AnyOf",
    "FieldTest",
    "HashLimit",
    "Limit",
    "Nth",
    "Random",
    "Recent",
    "RecentMode",
    "SetDirection",
    "SetTest",
    "Test",
    "flat",
]

RANDOM_RANGE: Final = 1 << 31
"""``statistic --mode random`` compares 31 random bits with an integer (``xt_statistic``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTest:
    """``(field & mask) in values``, or not in when ``negated``; never true of an absent field.

    ``mask`` is None when every bit counts. ``values`` is not empty.
    """

    field: Field
    values: tuple[Value, ...]
    mask: int | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """At least one of ``tests`` holds; the whole is negated, not its parts.

    ``! --ctstate RELATED,DNAT`` is ``AnyOf((state is RELATED, status has DNAT), negated=True)``:
    true of a packet without a conntrack entry, because neither part holds there.
    """

    tests: tuple[FieldTest, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Random:
    """True with probability ``numerator / 2**31`` (``xt_statistic``, random mode)."""

    numerator: int
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Nth:
    """True of one in ``every`` packets that reach the test, first after ``packet`` others.

    ``packet`` is 0 to ``every - 1``. The counter belongs to the rule (``xt_statistic``, nth mode).
    """

    every: int
    packet: int
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """True while a token bucket holds a packet's worth, which is then taken out of it (``xt_limit``).

    The bucket fills with time, up to ``capacity``, and is full at first. ``interval`` is the time in
    which a packet's worth flows in; both are in nanoseconds. The bucket belongs to the rule, whoever calls
    its chain. Lowering, which may write a rule in several places, gives it a name, ``bucket``.
    """

    interval: int
    capacity: int
    bucket: str = ""

    @property
    def burst(self) -> int:
        """The packets that pass a full bucket at once."""
        return self.capacity // self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class HashLimit:
    """True while the packet's bucket in the table ``name`` holds a packet's worth, which is then taken.

    Where it is ``above``, true while it does not. There is a bucket for each value of the fields in ``key``,
    of which addresses are masked; a packet without a port has port 0 (``hashlimit_init_dst``).
    ``interval`` and ``capacity`` are as in :class:`Limit`. A bucket is full again once no packet has come
    to it for ``expire`` milliseconds. ``size`` is the greatest number of buckets, 0 for the kernel's default.
    """

    name: str
    key: tuple[Field, ...]
    source_mask: int
    destination_mask: int
    interval: int
    capacity: int
    expire: int
    size: int = 0
    above: bool = False

    @property
    def burst(self) -> int:
        """The packets that pass a full bucket at once."""
        return self.capacity // self.interval


class SetDirection(StrEnum):
    """The side of the packet that a dimension of an ipset is compared with."""

    SRC = "src"
    DST = "dst"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTest:
    """The packet's fields, one per dimension, are a member of the ipset ``name``."""

    name: str
    directions: tuple[SetDirection, ...]
    negated: bool = False


class RecentMode(StrEnum):
    """The operations of ``-m recent`` on its list, spelled as the option."""

    SET = "set"
    RCHECK = "rcheck"
    UPDATE = "update"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """``-m recent``: test or change the list ``name`` with the packet's address (``xt_recent``).

    ``seconds`` and ``hitcount`` are None when not given. ``side`` says which address is the key;
    ``mask`` is applied to it. With fields in ``key``, which lowering alone gives, ``name`` is many lists,
    one for each value that these fields of the packet have.
    """

    name: str
    mode: RecentMode
    side: SetDirection
    mask: int
    seconds: int | None = None
    hitcount: int | None = None
    reap: bool = False
    rttl: bool = False
    negated: bool = False
    key: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """``-m nfacct``: always true, and counts the packet in the object ``name`` (``nfacct_mt``)."""

    name: str


Test = FieldTest | AnyOf | Random | Nth | Limit | HashLimit | SetTest | Recent | Account


def flat(
    tests: Iterable[Test],
) -> Iterator[FieldTest | Random | Nth | Limit | HashLimit | SetTest | Recent | Account]:
    """Yield the tests in order, each :class:`AnyOf` as its parts."""
    for test in tests:
        if isinstance(test, AnyOf):
            yield from test.tests
        else:
            yield test
