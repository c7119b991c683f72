"""Named objects that rules share: counters, limits, quotas, helpers of conntrack and labels."""

from __future__ import annotations

from translate.dataclass import dataclass

__all__ = ["SharedCounter", "SharedHelper", "SharedLabel", "SharedLimit", "SharedObject", "SharedQuota"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCounter:
    """A counter that rules share, with its name; ``note`` describes it."""

    name: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimit:
    """A token bucket that rules share: ``rate`` tokens per ``unit``, at most ``burst``, full at first."""

    name: str
    rate: int
    unit: str
    burst: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQuota:
    """A quota that rules share: true up to ``size`` bytes, or only ``over`` them."""

    name: str
    size: int
    over: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedHelper:
    """A helper of conntrack, by its name in the kernel and the ``protocol`` of its connections."""

    name: str
    helper: str
    protocol: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLabel:
    """A label for packets, checked by the security module when the object is loaded (``secmark``)."""

    name: str
    label: str
    note: str


SharedObject = SharedCounter | SharedLimit | SharedQuota | SharedHelper | SharedLabel
"""A named object of nft that rules share."""
