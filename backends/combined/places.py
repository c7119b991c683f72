"""Places at which two components have base chains, so that their order of registration counts.

Base chains with the same hook and priority run in an order that depends on their registration: the chain that
was registered last runs first (``nf_hook_entries_grow``). Other chains always run in the order of their
priorities.
"""

from __future__ import annotations

from typing import Final

from translate.dataclass import dataclass
from translate.ir import TABLE_HOOKS, Family, Policy, Ruleset
from translate.nftlisting import Listing, base_chains

__all__ = ["Place", "places_of", "shared_places"]

_SEEN_BY: Final = {"ip": (Family.IP,), "ip6": (Family.IP6,), "inet": tuple(Family)}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A hook and a priority, at which chains of several components may be registered."""

    hook: str
    priority: int

    def __str__(self) -> str:
        return f"{self.hook}, priority {self.priority}"


def places_of(component: Listing | Ruleset, family: Family) -> frozenset[Place | str]:
    """Return the places of a component's base chains for a family.

    A place is the name of a hook alone if the priority is not known. Chains of iptables count only if they
    can do something: with a rule, or a policy that does not accept.
    """
    match component:
        case Listing():
            return frozenset(
                chain.hook if chain.priority is None else Place(chain.hook, chain.priority)
                for chain in base_chains(component)
                if family in _SEEN_BY.get(chain.family, ())
            )
        case Ruleset():
            return frozenset(
                Place(chain.hook.value.lower(), TABLE_HOOKS[table.name][chain.hook])
                for table in component.tables
                for chain in table.chains
                if chain.hook is not None and (chain.rules or chain.policy not in (None, Policy.ACCEPT))
            )


def shared_places(component: Listing | Ruleset, other: Listing | Ruleset, family: Family) -> tuple[str, ...]:
    """Return the places at which both components have a base chain, as text."""
    first, second = places_of(component, family), places_of(other, family)
    common = {str(place) for place in first & second if isinstance(place, Place)}
    for mine, other_places in ((first, second), (second, first)):
        hooks = {place for place in mine if isinstance(place, str)}
        common |= {
            str(place)
            for place in other_places
            if (place.hook if isinstance(place, Place) else place) in hooks
        }
    return tuple(sorted(common))
