"""nft sets for ipsets that rules change with ``-j SET``: a set that packets fill, with the saved elements.

``add`` keeps the timeout of a key that is in the set, as ``--add-set`` does; ``update`` begins it again, as
``--exist`` does (``nft_dynset_eval``). Each statement has its own timeout and the set has none, because in a
set with a timeout, nft cannot add an element that stays forever.

Sets of intervals cannot be changed by rules (``nft_set_type`` without ``update``), and the elements that
packets add to a set with nets depend on its longest prefix (``hash_net4_kadt``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from translate.dataclass import replace
from translate.ir import (
    SET_PORT_PROTOCOLS,
    Apply,
    Cell,
    Entry,
    FieldTest,
    Interval,
    IpSet,
    Origin,
    SetType,
    SetUpdate,
    Test,
)
from translate.nft.legal import Element, FilledSet, Part, SetChange
from translate.nft.legalise.headers import protocol_among, transports
from translate.nft.limits.refusal import CannotSay
from translate.nft.names import NameGiver
from translate.passes.inventory import Inventory

__all__ = ["change_of", "checked_update", "filled_sets", "separate_updates"]

_SIZE = 65536
"""The maximum number of elements of an ipset without ``maxelem``."""


def filled_sets(
    inventory: Inventory, ipsets: Mapping[str, IpSet], names: NameGiver
) -> dict[str, tuple[FilledSet, Origin]]:
    """Return the set for each ipset that rules change, by the ipset's name, with the first of the rules."""
    filled: dict[str, tuple[FilledSet, Origin]] = {}
    for update, origin in inventory.tests_of_type(SetUpdate):
        if update.name in ipsets and update.name not in filled:
            filled[update.name] = _set(ipsets[update.name], update, names), origin
    return filled


def _set(ipset: IpSet, update: SetUpdate, names: NameGiver) -> FilledSet:
    line = f", line {ipset.origin.line} of {ipset.origin.file}" if ipset.origin.line else ""
    return FilledSet(
        name=names.give(f"set_{ipset.name}"),
        key=ipset.fields(update.directions),
        size=int(_option(ipset, "maxelem") or _SIZE),
        timeout=None,
        ends=_option(ipset, "timeout") is not None,
        elements=tuple(
            Element(Entry(key=element.key, actions=(), origin=element.origin)) for element in ipset.elements
        ),
        note=f"ipset {ipset.name} {ipset.type}{line}",
    )


def _option(ipset: IpSet, name: str) -> str | None:
    return next((option.value for option in ipset.options if option.name == name), None)


def checked_update(update: SetUpdate, ipsets: Mapping[str, IpSet], inventory: Inventory) -> None:
    """Raise CannotSay for a change that nftables cannot make."""
    if update.name not in ipsets:
        raise CannotSay("ipset", f"the members of ipset {update.name} are not known")
    ipset = ipsets[update.name]
    if Cell.NET in ipset.type.cells or ipset.type is SetType.BITMAP_PORT:
        reason = f"rules of nftables cannot change the translation of a {ipset.type}, a set of intervals"
        raise CannotSay("set-intervals", reason)
    if any(option.name == "forceadd" for option in ipset.options):
        raise CannotSay("set-forceadd", f"nftables removes no element to make room in ipset {ipset.name}")
    if _option(ipset, "timeout") is None:
        return
    updates = [other for other, _ in inventory.tests_of_type(SetUpdate) if other.name == update.name]
    added = [other for other in updates if not other.delete]
    if not any(other.refresh for other in added):
        return
    timeouts = [_timeout(other, ipset) for other in added]
    permanent = bool(ipset.elements) or not all(timeouts)
    if permanent and (ipset.elements or any(timeouts)):
        reason = (
            f"ipset {ipset.name} has elements without a timeout; nftables cannot add a timeout to an element"
        )
        raise CannotSay("set-timeouts", reason)


def change_of(update: SetUpdate, ipset: IpSet, filled: FilledSet, tests: Sequence[Test]) -> list[Part]:
    """Return the statement that changes the set, after the matches that it needs; ``tests`` are the rule's.

    Raises CannotSay.
    """
    parts: list[Part] = []
    key = ipset.fields(update.directions)
    allowed = transports(tests)
    if Cell.PORT in ipset.type.cells and not (allowed and set(allowed) <= SET_PORT_PROTOCOLS):
        if not update.delete:
            reason = "the rule does not test for TCP, UDP, SCTP or UDPLite, whose ports nftables reads"
            raise CannotSay("set-ports", reason)
        parts.append(protocol_among(SET_PORT_PROTOCOLS))  # the set has no elements of other protocols
    if ipset.type is SetType.HASH_IP:
        parts.append(FieldTest(field=key[0], values=(Interval.point(0),), negated=True))
    seconds = _timeout(update, ipset)
    timeout = seconds if seconds and not update.delete else None
    add = not update.delete and not (update.refresh and timeout is not None)
    return [*parts, SetChange(filled.name, key, delete=update.delete, add=add, timeout=timeout)]


def _timeout(update: SetUpdate, ipset: IpSet) -> int:
    """Return the timeout of a new element in seconds, 0 for none (``ip_set_adt_opt_timeout``)."""
    default = _option(ipset, "timeout")
    if default is None:
        return 0
    return int(default) if update.timeout is None else update.timeout


def separate_updates(apply: Apply) -> tuple[Apply, tuple[Apply, ...]] | None:
    """Return a rule that makes several changes as one rule with its tests, and one rule for each change.

    None for any other rule.

    If a match of one change fails, the next change must still be made.
    """
    updates = tuple(test for test in apply.tests if isinstance(test, SetUpdate))
    if len(updates) < 2:
        return None
    tests = tuple(test for test in apply.tests if not isinstance(test, SetUpdate))
    protocols = transports(tests)
    protocol = (protocol_among(protocols),) if protocols else ()
    return replace(apply, tests=tests), tuple(replace(apply, tests=(*protocol, each)) for each in updates)
