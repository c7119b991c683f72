"""One row of an ``iptables -L`` listing as words of a rule, with the parts that the listing hides."""

from __future__ import annotations

import re
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import Counters, Family, Field, Hidden, Origin, Unknown
from translate.read.extensions import TARGETS, UNMODELLED_TARGETS
from translate.read.listing.printed import PrintedError, everywhere, parse_printed
from translate.read.spelling.address import parse_address_mask, parse_host
from translate.read.spelling.errors import OptionError
from translate.read.spelling.names import protocol_number

__all__ = ["COLUMNS", "ROW", "ListingLayout", "ListingRow", "RowError", "RowReader", "exact_counters"]

COLUMNS: Final = re.compile(
    r"\s*(num\s+)?(pkts\s+bytes\s+)?target\s+prot\s+opt\s+(in\s+out\s+)?source\s+destination\s*"
)
"""The line that names the columns."""

ROW: Final = re.compile(
    r"\s*(?:\d+\s+){0,1}(?:\d+[KMGT]?\s+\d+[KMGT]?\s+)?(?:\S+\s+)?!?[a-z0-9-]+\s+(?:--|-f|!f)\s+\S+\s+\S+.*"
)
"""The pattern by which a row is recognised within prose."""

_AMOUNT: Final = re.compile(r"[0-9]+[KMGT]?")
_OPT: Final = ("--", "-f", "!f")
_LETTER: Final = re.compile("[A-Za-z]")
_NO_INTERFACES: Final = Unknown(
    "the listing hides interfaces (iptables -L without -v)", Hidden.TESTS, (Field.IIF, Field.OIF)
)
_EXACT: Final = re.compile(r"[0-9]{1,20}")
"""An exact counter; large counters are printed with K, M or G, except with ``-x``."""
_PLAIN_TARGETS: Final = frozenset({"ACCEPT", "DROP", "RETURN"})
"""Targets without options."""


@dataclass(frozen=True, slots=True)
class ListingLayout:
    """The optional columns that a listing has."""

    numbered: bool = False
    counted: bool = False
    interfaces: bool = False


@dataclass(slots=True)
class ListingRow:
    """A row as words of a rule, before its table is known. ``tail`` is the column after the addresses."""

    origin: Origin
    tail: int = 1
    target: str | None = None
    words: list[str] = field(default_factory=list)
    counters: Counters | None = None
    unknown: list[Unknown] = field(default_factory=list)


class RowError(Exception):
    """A row that cannot be read: the column of the fault, and a hint or None."""

    def __init__(self, column: int, message: str, hint: str | None = None) -> None:
        self.column = column
        self.message = message
        self.hint = hint
        super().__init__(message)


def exact_counters(packets: str, octets: str) -> Counters | None:
    """Return the counters, or None if one of them is rounded."""
    if _EXACT.fullmatch(packets) and _EXACT.fullmatch(octets):
        return Counters(int(packets), int(octets))
    return None


@dataclass(frozen=True, slots=True)
class RowReader:
    """A reader for the rows of one family; ``excerpt`` as in :func:`translate.read.listing.read_listing`."""

    family: Family
    excerpt: bool

    def read(self, origin: Origin, layout: ListingLayout) -> ListingRow:
        """Return the row at ``origin``. Raises RowError."""
        text = origin.text
        cells = list(re.finditer(r"\S+", text))
        at = 1 if layout.numbered else 0
        amounts = [cell[0] for cell in cells[at : at + 2]] if layout.counted else []
        if layout.counted:
            at += 2
        if not all(_AMOUNT.fullmatch(amount) for amount in amounts):
            raise RowError(
                1, "packets and bytes were expected here", "the column names include pkts and bytes"
            )
        has_target = _has_target(cells, at)
        after = at + (1 if has_target else 0)
        opt = after + 1 < len(cells) and cells[after + 1][0] in _OPT
        source = after + (2 if opt else 1) + (2 if layout.interfaces else 0)
        if source + 1 >= len(cells):
            raise RowError(len(text.rstrip()) + 1, "the row ends before its destination", "is it cut?")
        destination = cells[source + 1]
        row = ListingRow(origin, tail=destination.end() + 1, target=cells[at][0] if has_target else None)
        if len(amounts) == 2:
            row.counters = exact_counters(*amounts)
        self._address(row, "-s", "source", cells[source])
        self._address(row, "-d", "destination", destination)
        if layout.interfaces:
            for option, cell in zip(("-i", "-o"), cells[source - 2 : source], strict=True):
                if cell[0] not in ("*", "any"):
                    row.words += _inverted(option, cell[0])
        else:
            row.unknown.append(_NO_INTERFACES)
        if protocol_number(cells[after][0].lstrip("!")) != 0:
            row.words += _inverted("-p", cells[after][0])
        if opt and cells[after + 1][0] != "--":
            row.words += ["-f"] if cells[after + 1][0] == "-f" else ["!", "-f"]
        self._tail(row, text[destination.end() :].rstrip(), destination.end())
        return row

    def _address(self, row: ListingRow, option: str, side: str, cell: re.Match[str]) -> None:
        text = cell[0].removeprefix("!")
        if text == "anywhere":
            if text != cell[0]:
                row.words += ["!", option, everywhere(self.family)]
            return
        try:
            parsed = parse_address_mask(self.family, text, option=0)
            parse_host(self.family, text.partition("/")[0], option=0)  # which may be invalid before a /0
        except OptionError as error:
            tested = (Field.SADDR if side == "source" else Field.DADDR,)
            if _LETTER.search(text):
                reason = f'the {side} "{cell[0]}" is printed by name'
            elif self.excerpt:
                reason = f'the {side} "{cell[0]}" is not an address'
            else:
                raise RowError(cell.start() + 1 + error.offset, error.message, error.hint) from None
            row.unknown.append(Unknown(reason, Hidden.TESTS, tested))
            return
        if not parsed.is_everything or text != cell[0]:
            row.words += _inverted(option, cell[0])

    def _tail(self, row: ListingRow, text: str, start: int) -> None:
        unmodelled = None if row.target is None else UNMODELLED_TARGETS.get(row.target)
        try:
            if unmodelled is not None:
                raise PrintedError(0, text.strip() or unmodelled.name)
            printed = parse_printed(text, row.target, self.family)
        except PrintedError as error:
            if self.excerpt:
                message = f'no modelled match or target prints "{error.text}"'
                raise RowError(start + error.offset + 1, message) from None
            self._keep_unknown(row, text, error.text)
            return
        row.words += printed.matches
        row.unknown += printed.unknown
        if row.target is None:
            return
        if printed.translated is not None and not self._is_address(printed.translated):
            reason = f'target {row.target} goes to "{printed.translated}", which is a name'
            row.unknown.append(Unknown(reason, Hidden.ACTION))
            row.target = None
            return
        row.words += ["-g" if printed.goto else "-j", row.target, *printed.options]
        if printed.translated is not None:
            option = "--to-destination" if row.target == "DNAT" else "--to-source"
            row.words += [option, printed.translated]

    def _keep_unknown(self, row: ListingRow, text: str, unread: str) -> None:
        """Treat a row with an unknown tail as a rule that may match and then apply its target."""
        reason = f'"{unread}" is not modelled'
        row.unknown.append(Unknown(reason, Hidden.TESTS))
        target, row.target = row.target, None
        if target is None:
            return
        if target in _PLAIN_TARGETS or not (target in TARGETS or target in UNMODELLED_TARGETS):
            row.target = target
            row.words += ["-g" if "[goto]" in text.split() else "-j", target]
            return
        hides = UNMODELLED_TARGETS[target].hides if target in UNMODELLED_TARGETS else Hidden.ACTION
        row.unknown.append(Unknown(f"-j {target}: {reason}", hides))

    def _is_address(self, translated: str) -> bool:
        if not _LETTER.search(translated) or self.family is Family.IP6:
            return True  # numbers; the rule reader reports faults in them
        try:
            parse_host(self.family, translated.partition(":")[0], option=0)
        except OptionError:
            return False
        return True


def _inverted(option: str, cell: str) -> list[str]:
    return ["!", option, cell[1:]] if cell.startswith("!") else [option, cell]


def _has_target(cells: list[re.Match[str]], at: int) -> bool:
    """Return whether the target column is filled; it is blank for a rule that only counts.

    The column ``opt`` shows this, unless it is blank as well (``ip6tables`` before 1.8.9).
    """
    words = [cell[0] for cell in cells[at : at + 3]]
    if len(words) == 3 and words[2] in _OPT:
        return True
    if len(words) >= 2 and words[1] in _OPT:
        return False
    if len(words) >= 2 and protocol_number(words[1].lstrip("!")) is not None:
        return True
    if words and protocol_number(words[0].lstrip("!")) is not None:
        return False
    column = cells[at].start() + 1 if at < len(cells) else 1
    raise RowError(column, "a target and a protocol were expected here", "the listing may be cut")
