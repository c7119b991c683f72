"""Contents of a ruleset as commands that libnftables loads one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from translate.ir import Origin

__all__ = ["IPTABLES_NFT", "SEED", "Command", "Form", "GivenSet", "Group", "Kind"]

IPTABLES_NFT: Final = (
    "take such tables with iptables-nft-save, and give that as RULES; here give the other tables alone "
    "(nft list table FAMILY NAME)"
)
"""Advice for tables of iptables-nft: their listing by nft differs from their effect in the kernel."""


SEED: Final = 0
"""The seed of ``jhash`` if none is given: the kernel would draw another one with each load."""


class Form(StrEnum):
    """The language of a command."""

    TEXT = "text"
    JSON = "json"


class Kind(IntEnum):
    """The kind of object that a command adds; the numbers give an order in which they can be added.

    Chains stand empty before the maps whose elements go to them, objects before the maps that hold
    them, sets with their elements before the rules that ask them: a constant set takes none once a rule is
    bound to it (``nf_tables_newsetelem``).
    """

    TABLE = 1
    CHAIN = 2
    OBJECT = 3
    FLOWTABLE = 4
    SET = 5
    ELEMENT = 6
    RULE = 7


@dataclass(frozen=True, slots=True)
class GivenSet:
    """A set or map by its table's family, its table and its name."""

    family: str
    table: str
    name: str

    def __str__(self) -> str:
        return f"{self.family} {self.table} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command, on as few lines as it can have.

    ``where`` is the set that it declares or gives elements to, and ``bare`` what does so without elements.

    ``title`` is what the thing is called, where its place says little (JSON stands on one line).
    ``family`` is that of the table to which something is added, empty where the command does not say it.
    ``fills`` are the sets into which a rule puts what it meets. ``devices`` are those that must be there.
    ``foreign`` says that a chain looks as iptables-nft makes them, ``counting`` that a rule acts by how much
    has passed, or how fast.
    """

    kind: Kind
    text: str
    origin: Origin
    form: Form = Form.TEXT
    title: str = ""
    family: str = ""
    where: GivenSet | None = None
    bare: str | None = None
    fills: tuple[GivenSet, ...] = ()
    devices: tuple[str, ...] = ()
    foreign: bool = False
    counting: bool = False


Group = tuple[bool, tuple[Command, ...]]
"""Commands, and whether they may be put into another order."""
