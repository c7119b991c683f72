"""Members and families: the repeated parts of a large ruleset.

The rules of one service of a cluster are a *member*: the rules that lead to it from chains that all
services share, and the chains that only these rules lead to. The members of one *family* have the same
rules in the same order. They differ in *constants* only: addresses and ports that are compared, the
targets of DNAT, and the names of their own chains. Which of its constants are equal is the same in all.
"""

from __future__ import annotations

from dataclasses import dataclass

from translate.ir import Field

__all__ = ["Member", "RuleFamily"]


@dataclass(frozen=True, slots=True)
class Member:
    """One member: the first line of each of its parts, and its constants as they are spelled."""

    starts: tuple[int, ...]
    constants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFamily:
    """Members that are the same except for their constants.

    A part is a rule of a shared chain that leads to the member or does by itself what the member does
    (the first ``entrances`` parts), or a chain of the member's own. ``lengths`` has the number of lines of
    each part, ``fields`` the field that is compared with each constant (None for the target of a DNAT), and
    ``shown`` the indices of the members whose rules are in the sample.
    """

    entrances: int
    lengths: tuple[int, ...]
    fields: tuple[Field | None, ...]
    members: tuple[Member, ...]
    shown: tuple[int, ...]
