"""Tests: the conditions under which a rule matches a packet.

The extensions of iptables are syntax; their meaning is a few kinds of test over the table of fields.
A rule matches when *all* its tests hold. They are evaluated in order, which matters only to tests with
state or chance: :class:`Random`, :class:`Nth`, :class:`Recent`, :class:`Limit`, :class:`SetUpdate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final

from translate.dataclass import dataclass
from translate.dataclass import field as attribute
from translate.ir.fields import Field
from translate.ir.packettests import BytecodeTest, HeaderOptions
from translate.ir.values import Value
from translate.ir.words import Word

__all__ = [
    "BYTE_TESTS",
    "RANDOM_RANGE",
    "Account",
    "AnyOf",
    "CgroupTest",
    "ClusterShare",
    "ConnLabel",
    "ConnectionLimit",
    "FieldTest",
    "HashLimit",
    "Limit",
    "Nth",
    "Quota",
    "Random",
    "Recent",
    "RecentMode",
    "SetDirection",
    "SetTest",
    "SetUpdate",
    "Test",
    "WordTest",
    "flat",
]

RANDOM_RANGE: Final = 1 << 31
"""``statistic --mode random`` compares 31 random bits with an integer (``xt_statistic``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldTest:
    """``(field & mask) in values``, or not in when ``negated``; never true of an absent field.

    ``mask`` is None when every bit counts. ``values`` is not empty. ``reads_data``: the kernel reads the
    field of a later fragment from its data, as if this began with a header (``xt_ecn``, ``xt_tcpmss``). All
    other matches find no field there. ``reads_ports``: the kernel reads only the ports of a transport header
    (``xt_multiport``). Neither is compared.
    """

    field: Field
    values: tuple[Value, ...]
    mask: int | None = None
    negated: bool = False
    reads_data: bool = attribute(default=False, compare=False, repr=False)
    reads_ports: bool = attribute(default=False, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyOf:
    """True if at least one of ``tests`` holds; ``negated`` inverts the result, not each test.

    ``! --ctstate RELATED,DNAT`` is ``AnyOf((state is RELATED, status has DNAT), negated=True)``:
    true of a packet without a conntrack entry, because neither test holds there.
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
    """True for one in ``every`` packets that reach the test; the first ``packet`` packets do not match.

    ``packet`` is 0 to ``every - 1``. The counter belongs to the rule (``xt_statistic``, nth mode).
    """

    every: int
    packet: int
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """True while a token bucket has a token, which is then removed (``xt_limit``).

    The bucket is full at first. It gains one token in each ``interval``, up to ``capacity``; both are in
    nanoseconds. Each rule has one bucket, whichever chain calls it. Lowering may copy a rule to several
    places, and then ``bucket`` names the bucket that the copies share.
    """

    interval: int
    capacity: int
    bucket: str = ""

    @property
    def burst(self) -> int:
        """The number of packets that a full bucket lets pass at once."""
        return self.capacity // self.interval


@dataclass(frozen=True, slots=True, kw_only=True)
class HashLimit:
    """True while the packet's bucket in the table ``name`` has a token, which is then removed.

    With ``above``, true while it has none. There is a bucket for each value of the fields in ``key``, whose
    addresses are masked; a packet without a port has port 0 (``hashlimit_init_dst``). ``interval`` and
    ``capacity`` are as in :class:`Limit`. A bucket that no packet has reached for ``expire`` milliseconds is
    full again. ``size`` is the greatest number of buckets, 0 for the kernel's default.

    With a ``window`` of so many seconds, every packet is counted (``--hashlimit-rate-match``). The test is
    true while at most ``burst`` packets came since the window began, and in the window before no more than
    :attr:`rate` in each ``window``. The first packet after its end begins the next window.
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
    window: int = 0

    @property
    def burst(self) -> int:
        """The number of packets that a full bucket lets pass at once."""
        return self.capacity // self.interval

    @property
    def rate(self) -> int:
        """The greatest number of packets in a window after which the next one is not closed."""
        return 10**9 // self.interval


class SetDirection(StrEnum):
    """The side of the packet that a dimension of an ipset is compared with."""

    SRC = "src"
    DST = "dst"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimit:
    """True while the packet's address has at most ``limit`` connections (``xt_connlimit``).

    With ``above``, true while it has more. The packet's own connection counts once. The address is that of
    ``side`` under ``mask``. Each rule counts only connections whose packets have met it. Lowering may copy a
    rule to several places, and then ``state`` names the count that the copies share.
    """

    limit: int
    above: bool
    side: SetDirection
    mask: int
    state: str = ""

    @property
    def burst(self) -> int:
        """The number of new connections after which the result of the test changes."""
        return self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """True while the packets that have reached the test have at most ``size`` bytes in total (``xt_quota``).

    After the first packet that exceeds it, the test never holds; ``negated`` inverts the result. A packet's
    bytes are counted from its IP header on. Lowering may copy a rule to several places, and then ``state``
    names the count that the copies share.
    """

    size: int
    negated: bool = False
    state: str = ""

    @property
    def burst(self) -> int:
        """The greatest number of packets that the quota lets pass, which is that of the shortest packets."""
        return self.size // _SHORTEST


_SHORTEST: Final = 28  # IPv4 with UDP


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTest:
    """True if the packet's fields, one per dimension, are a member of the ipset ``name``.

    With ``nomatch``, true if the element that decides has the flag ``nomatch`` (``ip_set_test``).
    ``counters``: the rule also compares the counters of the element, which only matters in a set that has
    them. ``filled``: a rule of the ruleset changes the set.
    """

    name: str
    directions: tuple[SetDirection, ...]
    negated: bool = False
    nomatch: bool = False
    counters: bool = False
    filled: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SetUpdate:
    """``-j SET``: always true, and adds the packet's key to the ipset ``name`` (``set_target``).

    With ``delete`` it removes the key. A key that is in the set already stays as it is, unless ``refresh``
    gives it the new timeout (``--exist``). ``timeout`` is in seconds, 0 for none, and None for that of the
    set; a set without timeouts ignores it. A packet that lacks a part of the key changes nothing.
    """

    name: str
    directions: tuple[SetDirection, ...]
    delete: bool = False
    refresh: bool = False
    timeout: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnLabel:
    """True if the packet's connection has the label ``number`` (``connlabel_mt``).

    With ``add``, the connection gets the label. A packet without a connection has no label. ``negated``
    inverts the result, also for such a packet.
    """

    number: int
    add: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShare:
    """True if a hash of the connection's original source selects one of ``nodes`` (``xt_cluster_mt``).

    ``nodes`` has a bit for each of ``total`` nodes. Without a connection the test never holds. A multicast
    frame with a packet to a unicast address counts as a frame to this machine from here on.
    """

    total: int
    nodes: int
    seed: int
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

    ``seconds`` and ``hitcount`` are None when not given. ``side`` selects the source or the destination
    address, and ``mask`` is applied to it. Lowering may add fields in ``key``: then there is a separate list
    for each value of these fields.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class WordTest:
    """``-m u32``: true if each of ``words`` has one of its values; ``negated`` inverts the result.

    A word that is not whole in the packet has no value (``u32_match_it``), so a negated test is true of a
    packet that is too short.
    """

    words: tuple[Word, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CgroupTest:
    """``-m cgroup --path``: the packet's socket belongs to the cgroup ``path`` or to one below it.

    ``path`` has no slash at its ends, and is not empty. ``negated`` inverts the result, also for a packet
    without a socket.
    """

    path: str
    negated: bool = False


PlainTest = (
    FieldTest
    | Random
    | Nth
    | Limit
    | HashLimit
    | ConnectionLimit
    | Quota
    | SetTest
    | SetUpdate
    | ConnLabel
    | ClusterShare
    | Recent
    | Account
    | WordTest
    | HeaderOptions
    | BytecodeTest
    | CgroupTest
)
"""A test that has no parts."""

Test = PlainTest | AnyOf

BYTE_TESTS: Final = (WordTest, HeaderOptions, BytecodeTest)
"""Tests of bytes and headers of the packet, which leave no state."""


def flat(tests: Iterable[Test]) -> Iterator[PlainTest]:
    """Yield the tests in order, with each :class:`AnyOf` replaced by its parts."""
    for test in tests:
        if isinstance(test, AnyOf):
            yield from test.tests
        else:
            yield test
