"""The lists of ``-m recent`` in a Program, each with its use in all rules.

xt_recent keeps several times for each address. Where no rule counts packets (``--hitcount`` above 1) or
compares TTLs (``--rttl``), the last time is enough: a list is a map from address to the time at which it was
last seen, and ``--seconds N`` tests whether that was at most N seconds ago.

``--reap`` removes addresses that are too old. No rule distinguishes such an address from an absent one if
every check of the list has the same ``--seconds`` and no rule tests only for presence. ``--remove`` tests for
presence, and so does a negated ``--update``, which refreshes an address that is present but too old
(``recent_mt``, ``recent_entry_reap``).
"""

from __future__ import annotations

from translate.dataclass import dataclass, field
from translate.ir import NOWHERE, Field, Origin, Recent, RecentMode
from translate.passes.inventory import Inventory

__all__ = ["CAPACITY", "Hits", "RecentList", "changes_list", "counted", "inexact", "recent_lists"]

CAPACITY = 100
"""The default capacity of a list of ``xt_recent`` in addresses; one more evicts the oldest."""

_CHECKS = (RecentMode.RCHECK, RecentMode.UPDATE)


@dataclass(frozen=True, slots=True)
class Hits:
    """A number of packets, two or more, that must come within ``seconds`` (None: at any time)."""

    seconds: int | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentList:
    """A list. ``origin`` is the first rule that adds addresses to it, or else the first that names it.

    With fields in ``key`` there is one list for each value of these fields. ``filled``: a rule adds
    addresses. ``seconds``: the distinct timeouts of its checks of the last packet, in order, None for no
    timeout. ``hits``: the distinct numbers of packets that its other checks require. ``reaped``: a check has
    ``--reap``. ``asks_presence``: a rule tests whether an address is present, however old.
    """

    name: str
    masks: frozenset[int]
    seconds: tuple[int | None, ...]
    hits: tuple[Hits, ...] = ()
    filled: bool
    reaped: bool
    asks_presence: bool
    key: tuple[Field, ...] = ()
    origin: Origin = field(default=NOWHERE, compare=False)

    @property
    def limited(self) -> bool:
        """Return whether the capacity of the list can affect a packet."""
        return self.filled and bool(self.seconds or self.hits)

    @property
    def reaping_shows(self) -> bool:
        """Return whether the removal of an address by ``--reap`` can affect a packet."""
        times = {*self.seconds, *(hits.seconds for hits in self.hits)}
        return self.reaped and (self.asks_presence or len(times) > 1)


def recent_lists(inventory: Inventory) -> dict[str, RecentList]:
    """Return the lists by name, in the order in which rules first name them."""
    rules: dict[str, list[tuple[Recent, Origin]]] = {}
    for test, origin in inventory.tests_of_type(Recent):
        rules.setdefault(test.name, []).append((test, origin))
    return {name: _list(name, tests) for name, tests in rules.items()}


def _list(name: str, rules: list[tuple[Recent, Origin]]) -> RecentList:
    tests = [test for test, _ in rules]
    checks = [test for test in tests if test.mode in _CHECKS]
    seconds = {test.seconds for test in checks if counted(test) is None}
    hits = {counts for test in checks if (counts := counted(test)) is not None}
    presence = any(
        test.mode is RecentMode.REMOVE or (test.mode is RecentMode.UPDATE and test.negated) for test in tests
    )
    if presence:
        seconds.add(None)
    fills = [origin for test, origin in rules if test.mode is RecentMode.SET]
    return RecentList(
        name=name,
        masks=frozenset(test.mask for test in tests),
        seconds=tuple(sorted(seconds, key=lambda s: (s is None, s or 0))),
        hits=tuple(sorted(hits, key=lambda h: (h.seconds is None, h.seconds or 0, h.count))),
        filled=bool(fills),
        reaped=any(test.reap for test in tests),
        asks_presence=presence,
        key=tests[0].key,
        origin=fills[0] if fills else rules[0][1],
    )


def changes_list(test: Recent) -> bool:
    """Return whether the test changes the list; no rule can detect the effect of ``--reap``."""
    return test.mode is not RecentMode.RCHECK


def counted(test: Recent) -> Hits | None:
    """Return the packets that a check counts; None if only the last packet matters."""
    if test.hitcount is None or test.hitcount < 2:
        return None
    return Hits(test.seconds, test.hitcount)


def inexact(test: Recent, recent_list: RecentList) -> tuple[str, str] | None:
    """Return the feature and the reason if last-seen times cannot represent the list, otherwise None."""
    if test.rttl:
        return "recent-rttl", "--rttl compares with the TTL of an earlier packet, which is not kept"
    if len(recent_list.masks) > 1:
        reason = (
            f"the list {recent_list.name} has another mask in another rule; the kernel uses the first mask"
        )
        return "recent-mask", reason
    if recent_list.reaping_shows and test.reap:
        reason = (
            f"--reap on the list {recent_list.name} affects its other rules, which look for older addresses"
        )
        return "recent-reap", reason
    return None
