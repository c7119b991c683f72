"""The sockets that ``-m cgroup`` and ``-m owner --socket-exists`` look at.

``cgroup_mt_v2`` looks at ``skb->sk`` if it is a full socket. The answer to a SYN has the socket of a request
(``tcp_make_synack``), which is none. ``meta cgroup`` looks at the listening socket instead
(``skb_to_full_sk`` in ``nft_meta_get_eval_cgroup``), and ``socket wildcard`` fails for the request
(``nft_socket_eval``). So the rule has both matches. ``meta cgroup`` comes first, because ``socket`` searches
for a socket that takes the packet if ``skb->sk`` is empty.

``owner_mt`` finds no socket if no process has it: a connection is not accepted yet, or lives on after its
process has closed it. Packets of the kernel itself (errors, RSTs) have a socket. ``meta cgroup`` is there for
all of them. ``meta skuid`` is there for a socket of a process, and ``socket wildcard`` is 1 for those of the
kernel, which are bound to no address; a connection always is. Only the protocols of :data:`LIVING_ON` have
sockets without a process.

nft does not allow ``socket`` in POSTROUTING (``nft_socket_validate``); :mod:`translate.nft.limits.sockets`
refuses rules that need it there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeGuard

from translate.ir import AnyOf, CgroupTest, Field, FieldTest, Interval, Test
from translate.nft.legal import OfCgroup
from translate.nft.limits.refusal import CannotSay
from translate.nft.limits.sockets import LIVING_ON, holds, may_match

__all__ = ["of_cgroup", "with_full_sockets", "with_living_sockets"]

_FULL: Final = FieldTest(field=Field.TAKER_WILDCARD, values=(Interval(0, 1),))
"""True of packets with a full socket."""


_PATH: Final = re.compile(r"[A-Za-z0-9_.@:-]+(/[A-Za-z0-9_.@:-]+)*")
"""The paths that nft can spell: it has no escapes in strings, and a last asterisk is a wildcard."""
_NO_NAMES: Final = frozenset({".", ".."})


def of_cgroup(test: CgroupTest) -> OfCgroup:
    """Return the match of a test that is not negated. Raises CannotSay."""
    assert not test.negated
    if not _PATH.fullmatch(test.path) or not _NO_NAMES.isdisjoint(test.path.split("/")):
        raise CannotSay("cgroup-path", f"nft cannot spell the path of a cgroup {test.path!r}")
    return OfCgroup(test.path)


_OPENED: Final = FieldTest(field=Field.SOCKET_UID, values=(Interval(0, (1 << 32) - 1),))
_UNBOUND: Final = FieldTest(field=Field.TAKER_WILDCARD, values=(Interval.point(1),))


def with_living_sockets(tests: tuple[Test, ...]) -> tuple[Test, ...]:
    """Return the tests, with those for a socket replaced by tests that fail for one without a process."""
    if not any(_asks_for_a_socket(test) for test in tests) or not may_match(tests, LIVING_ON):
        return tests
    return tuple(
        AnyOf(tests=(_OPENED, _UNBOUND), negated=not holds(test, 1)) if _asks_for_a_socket(test) else test
        for test in tests
    )


def _asks_for_a_socket(test: Test) -> TypeGuard[FieldTest]:
    return isinstance(test, FieldTest) and test.field is Field.SOCKET


def with_full_sockets(tests: Iterable[Test]) -> tuple[Test, ...]:
    """Return the tests, with one for a full socket after each test of its class."""
    full: list[Test] = []
    for test in tests:
        full.append(test)
        if isinstance(test, FieldTest) and test.field is Field.SOCKET_CLASS:
            full.append(_FULL)
    return tuple(full)
