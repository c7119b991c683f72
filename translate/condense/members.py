"""Members and families: the repeated parts of a large ruleset.

The rules of one service of a cluster are a *member*: its rules in chains that all services share, and the
chains that can be reached only through these rules. The members of one *family* have the same rules in the
same order. They differ only in *constants*: addresses and ports that are compared, the targets of DNAT, and
the names of their own chains. Constants that are equal in one member are equal in all.
"""

from __future__ import annotations

from translate.dataclass import dataclass
from translate.ir import Field

__all__ = ["Member", "RuleFamily"]


@dataclass(frozen=True, slots=True)
class Member:
    """One member: the first line of each of its parts, and its constants as written."""

    starts: tuple[int, ...]
    constants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFamily:
    """Members that differ only in their constants.

    The first ``entrances`` parts are rules of shared chains, which call the member or are all of it; the
    other parts are the member's own chains. ``lengths`` has the number of lines of each part, ``fields`` the
    field with which each constant is compared (None for the target of a DNAT), and ``shown`` the indices of
    the members whose rules are in the sample.
    """

    entrances: int
    lengths: tuple[int, ...]
    fields: tuple[Field | None, ...]
    members: tuple[Member, ...]
    shown: tuple[int, ...]
