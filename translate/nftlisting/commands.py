"""The contents of a ruleset as commands, which libnftables loads one after the other."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Final

from translate.dataclass import dataclass
from translate.ir import Origin

__all__ = ["IPTABLES_NFT", "SEED", "Command", "Form", "GivenSet", "Group", "Kind"]

IPTABLES_NFT: Final = (
    "save these tables with iptables-nft-save, and give the output as RULES; here give only the other tables "
    "(nft list table FAMILY NAME)"
)
"""Advice for tables of iptables-nft: nft may list them differently from their effect in the kernel."""


SEED: Final = 0
"""The seed of ``jhash`` if none is given, because the kernel would draw another seed at each load."""


class Form(StrEnum):
    """The language of a command."""

    TEXT = "text"
    JSON = "json"


class Kind(IntEnum):
    """The kind of object that a command adds; the numbers give an order in which they can be added.

    Empty chains come before the maps whose elements jump to them, objects before the maps that contain them,
    and sets with their elements before the rules that test them: a constant set accepts no elements once a
    rule is bound to it (``nf_tables_newsetelem``).
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
    """One command, on as few lines as possible.

    ``where`` is the set that it declares or adds elements to, and ``bare`` the command without the elements.

    ``title`` names the object in messages where its place does not (JSON may be one line). ``family`` is the
    family of the table, empty if the command does not name it. ``fills`` are the sets to which a rule adds
    elements from packets. ``devices`` are those that must exist. ``foreign`` is true for a chain like those
    of iptables-nft, and ``counting`` for a rule that depends on earlier packets or on time.
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
"""Commands, and whether their order may be changed."""
