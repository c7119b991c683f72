"""The search of the routing rules for the route of a packet (``fib_rules_lookup``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, Protocol, TypeVar

from backends.model.routes import RoutingRule, RuleAction
from backends.simulator.routing.path import LOOPBACK, NoRoute
from translate.ir import AddressType, Interval

__all__ = ["LookupKey", "RoutingRules", "refusal_of"]


class LookupKey(NamedTuple):
    """The properties of a packet that rules test (``struct flowi``).

    ``src`` None: no source is chosen yet. ``iif`` is ``lo`` for packets made on the node. ``oif`` is the
    interface that the sender demands, empty for none.
    """

    dst: int
    src: int | None = None
    iif: str = LOOPBACK
    oif: str = ""
    mark: int = 0


class _Entry(Protocol):
    @property
    def type(self) -> AddressType: ...
    @property
    def length(self) -> int: ...


E = TypeVar("E", bound=_Entry)

_BY_ACTION: Final = {
    RuleAction.UNREACHABLE: NoRoute.NET_UNREACHABLE,
    RuleAction.PROHIBIT: NoRoute.PROHIBITED,
    RuleAction.BLACKHOLE: NoRoute.BLACKHOLE,
}
_BY_TYPE: Final = {
    AddressType.UNREACHABLE: NoRoute.HOST_UNREACHABLE,
    AddressType.PROHIBIT: NoRoute.PROHIBITED,
    AddressType.BLACKHOLE: NoRoute.BLACKHOLE,
}


def refusal_of(entry: _Entry) -> NoRoute | None:
    """Return the refusal that a route stands for (``fib_props``); None for a route that carries packets."""
    return _BY_TYPE.get(entry.type)


class RoutingRules:
    """The rules of one family, in order of priority."""

    def __init__(self, rules: Iterable[RoutingRule]) -> None:
        self._rules = tuple(rules)
        self.marks = 0
        """The bits of a mark on which the result of a search can depend."""
        for rule in self._rules:
            self.marks |= rule.mask

    def search(
        self, key: LookupKey, find: Callable[[int], E | None]
    ) -> tuple[E | NoRoute, RoutingRule | None]:
        """Return the route or refusal, and the rule that decided; None if none did.

        ``find`` returns the route of the packet in one table, or None. A route of type ``throw`` ends the
        search of its table only.
        """
        for rule in self._rules:
            if not _applies(rule, key):
                continue
            if rule.action is not RuleAction.LOOKUP:
                return _BY_ACTION[rule.action], rule
            entry = find(rule.table)
            if entry is None or entry.type is AddressType.THROW:
                continue
            if (refused := _BY_TYPE.get(entry.type)) is not None:
                return refused, rule
            if rule.suppress is not None and entry.length <= rule.suppress:
                continue
            return entry, rule
        return NoRoute.NET_UNREACHABLE, None


def _applies(rule: RoutingRule, key: LookupKey) -> bool:
    """Return whether a routing rule applies to a key (``fib_rule_match``)."""
    matches = (
        (not rule.iif or rule.iif == key.iif)
        and (not rule.oif or rule.oif == key.oif)
        and not (rule.mark ^ key.mark) & rule.mask
        and (rule.src is None or _holds(rule.src, key.src))
        and (rule.dst is None or key.dst in rule.dst)
    )
    return matches is not rule.negated


def _holds(network: Interval, address: int | None) -> bool:
    return address is not None and address in network
