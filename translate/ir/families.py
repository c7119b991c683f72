"""Families: parts of a large ruleset that are the same but for a few constants.

The rules of one service of a cluster are a *member*: the rules that lead to it from chains that all
services share, and the chains that these rules alone lead to. Members of one family have the same
rules in the same order, and differ in *constants* only: addresses and ports that are compared, the
targets of DNAT, and the names of their own chains. Which of its constants are equal is the same in all.
``translate.read.families`` finds them and says what exactly is asked of a member.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from translate.ir.fields import Field

if TYPE_CHECKING:
    from translate.ir.ruleset import Ruleset, Table

__all__ = ["Families", "Member", "RuleFamily"]


@dataclass(frozen=True, slots=True)
class Member:
    """One member: the first line of each of its parts, and its constants as they are spelled."""

    starts: tuple[int, ...]
    constants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFamily:
    """Members that are the same but for their constants.

    A part is a rule of a shared chain that leads to the member, or does by itself what the member does
    (the first ``entrances`` parts), or a chain of the member's own; ``lengths`` says how many lines each
    has. ``fields`` says for each constant the field that is compared with it, None for the target of a
    DNAT. ``shown`` are the numbers of those members whose rules are in the sample.
    """

    entrances: int
    lengths: tuple[int, ...]
    fields: tuple[Field | None, ...]
    members: Sequence[Member]
    shown: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """The families of a ruleset, and ``sample``: the ruleset with some members of each alone.

    What stands in the sample stands there as in the whole, with the same line numbers. ``line`` returns
    the text of a line by its number; ``whole`` the tables of the whole ruleset.
    """

    sample: Ruleset
    families: tuple[RuleFamily, ...]
    line: Callable[[int], str]
    whole: Callable[[], tuple[Table, ...]]
