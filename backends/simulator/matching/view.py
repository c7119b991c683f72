"""A packet at one hook, as rules see it."""

from __future__ import annotations

from collections.abc import Callable

from backends.model.packet import Port
from backends.simulator.conntrack.skb import Skb
from backends.simulator.routing.router import AnyRouter
from translate.dataclass import dataclass
from translate.ir import Hook

__all__ = ["HotDrop", "Reader", "Value", "View"]

Value = Port | str | None
"""The value of a field; None if the packet does not have the field."""


class HotDrop(Exception):  # noqa: N818  # par->hotdrop: not an error
    """A match drops the packet, whatever the action of its rule is."""


@dataclass(slots=True)
class View:
    """A packet at one hook, as rules see it; the name of a missing interface is empty."""

    skb: Skb
    hook: Hook
    iif: str
    oif: str
    router: AnyRouter


Reader = Callable[[View], Value]
"""Reads the value of a field. Raises HotDrop and Undecided."""
