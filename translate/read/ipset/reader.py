"""ipsets as ``ipset save`` and ``ipset list`` print them.

``ipset save`` prints ``create`` and ``add`` lines for ``ipset restore``. ``ipset list`` prints each set as a
paragraph, ``Name:`` to ``Members:``. If a set has an unsupported type or option, or elements that time out,
only its name and the reason are kept. That is an error only if a rule tests the set, because a node has sets
of all kinds. Text that is not ipset output raises ParseError.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from translate.dataclass import dataclass, field
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Interval, IpSet, Origin, SetElement, SetOption, SetType
from translate.plaintext import plain
from translate.read.ipset.element import ElementError, element_keys
from translate.read.spelling.scanner import QuoteError, Word, scan

__all__ = ["IpSets", "SetForm", "UnreadSet", "read_ipsets"]

_LONGEST_NAME: Final = 31  # IPSET_MAXNAMELEN, less its NUL
_MOST_DIAGNOSTICS: Final = 20
_DEFAULT_MAXELEM: Final = 65536
_PORT_RANGE: Final = Interval(0, 0xFFFF)

_FAMILIES: Final = {
    **dict.fromkeys(("inet", "ipv4", "-4"), Family.IP),
    **dict.fromkeys(("inet6", "ipv6", "-6"), Family.IP6),
}
_CREATE: Final = frozenset({"create", "-N", "--create", "n"})
_ADD: Final = frozenset({"add", "-A", "--add", "a"})
_EXIST: Final = frozenset({"-exist", "-!", "--exist"})
_SET_VALUES: Final = frozenset({"family", "hashsize", "maxelem", "timeout", "bucketsize", "initval", "range"})
_SET_FLAGS: Final = frozenset({"counters", "comment", "skbinfo", "forceadd"})
_ELEMENT_VALUES: Final = frozenset(
    {"timeout", "packets", "bytes", "comment", "skbmark", "skbprio", "skbqueue"}
)
_NOMATCH: Final = frozenset({SetType.HASH_NET, SetType.HASH_NET_PORT, SetType.HASH_IP_PORT_NET})
_HEADINGS: Final = ("Revision:", "Size in memory:", "References:")


class SetForm(StrEnum):
    """A form of input, spelled as ``--ipset-form`` takes it."""

    SAVE = "save"
    """Output of ``ipset save``."""

    LISTING = "listing"
    """Output of ``ipset list``."""


@dataclass(frozen=True, slots=True)
class UnreadSet:
    """A set that is not supported, and the reason."""

    origin: Origin
    reason: str


@dataclass(frozen=True, slots=True)
class IpSets:
    """The sets of an input, and the reasons for those that are not supported, by name."""

    sets: tuple[IpSet, ...]
    unread: Mapping[str, UnreadSet] = field(default_factory=dict)
    source: str = "<none>"


def read_ipsets(data: bytes, *, name: str, form: SetForm | None = None) -> IpSets:
    """Return the sets in ``data``; ``name`` is for diagnostics. With ``form`` None it is recognised.

    Raises ParseError with up to 20 diagnostics.
    """
    data = plain(data, name=name)
    if b"\0" in data:
        raise ParseError((Diagnostic(Origin(name), "this is a binary file, not ipsets"),))
    text = data.decode("utf-8", "surrogateescape")
    reader = _Reader(name)
    lines = [Origin(name, n, 1, line) for n, line in enumerate(text.split("\n"), 1)]
    lines = [line for line in lines if line.text.strip() and not line.text.startswith("#")]
    if form is None:
        form = SetForm.LISTING if lines and lines[0].text.startswith("Name:") else SetForm.SAVE
    if form is SetForm.SAVE:
        for line in lines:
            reader.command(line)
    else:
        _Listing(reader).read(lines)
    return reader.finish()


class _Fault(Exception):  # noqa: N818  # becomes a Diagnostic
    def __init__(self, column: int, message: str, hint: str | None = None) -> None:
        self.column, self.message, self.hint = column, message, hint
        super().__init__(message)


@dataclass(slots=True)
class _Set:
    """A set under construction. ``type`` is None for an unsupported set, which has a reason instead."""

    name: str
    origin: Origin
    type: SetType | None = None
    family: Family | None = None
    options: tuple[SetOption, ...] = ()
    most: int = _DEFAULT_MAXELEM
    ports: Interval = _PORT_RANGE
    reason: str | None = None
    elements: dict[tuple[Interval, ...], SetElement] = field(default_factory=dict)

    def unread(self, reason: str) -> None:
        if self.reason is None:
            self.reason = reason

    def declares(self, name: str) -> bool:
        return any(option.name == name for option in self.options)


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self._sets: dict[str, _Set] = {}
        self._diagnostics: list[Diagnostic] = []

    def report(self, origin: Origin, message: str, hint: str | None = None) -> None:
        shown = "".join(c if c.isprintable() else "?" for c in message)
        self._diagnostics.append(Diagnostic(origin, shown, hint))

    def finish(self) -> IpSets:
        if self._diagnostics:
            ordered = sorted(self._diagnostics, key=lambda d: (d.origin.line, d.origin.column))
            if len(ordered) > _MOST_DIAGNOSTICS:
                rest = len(ordered) - _MOST_DIAGNOSTICS
                where = ordered[_MOST_DIAGNOSTICS].origin
                ordered[_MOST_DIAGNOSTICS:] = [
                    Diagnostic(Origin(where.file, where.line), f"and {rest} more from here on")
                ]
            raise ParseError(tuple(ordered))
        sets = []
        unread = {}
        for ipset in self._sets.values():
            if ipset.type is None or ipset.reason is not None:
                unread[ipset.name] = UnreadSet(ipset.origin, ipset.reason or "")
                continue
            sets.append(
                IpSet(
                    name=ipset.name,
                    type=ipset.type,
                    family=ipset.family,
                    elements=tuple(ipset.elements.values()),
                    options=ipset.options,
                    origin=ipset.origin,
                )
            )
        return IpSets(tuple(sets), unread, self._name)

    # -- ipset save ------------------------------------------------------------------------------

    def command(self, line: Origin) -> None:
        """Read one line of ``ipset save``."""
        try:
            words = [w for w in _words(line.text) if w.text not in _EXIST]
            if not words or (len(words) == 1 and words[0].text == "COMMIT"):
                return
            command = words[0].text
            if command not in _CREATE and command not in _ADD:
                hint = "is this the output of ipset save or ipset list?"
                raise _Fault(words[0].column, f'unknown command "{command}"', hint)
            if len(words) < 3:
                raise _Fault(
                    len(line.text) + 1,
                    f'"{command}" needs a set and {"a type" if command in _CREATE else "an element"}',
                )
            if command in _CREATE:
                self.create(words[1], words[2], words[3:], line)
                return
            ipset = self._sets.get(words[1].text)
            if ipset is None:
                message = f'set "{words[1].text}" is not created before this line'
                raise _Fault(words[1].column, message)
            self.add(ipset, words[2], words[3:], line)
        except _Fault as fault:
            self.report(line.at(fault.column), fault.message, fault.hint)

    def create(self, name: Word, kind: Word, options: list[Word], line: Origin) -> _Set:
        """Declare a set, also if its options have a fault. Raises _Fault."""
        existing = self._sets.get(name.text)
        if existing is not None:
            message = f'set "{name.text}" is created twice'
            raise _Fault(name.column, message, f"first in line {existing.origin.line}")
        ipset = self._sets[name.text] = _Set(name.text, line)
        if not 0 < len(name.text.encode("utf-8", "surrogateescape")) <= _LONGEST_NAME:
            raise _Fault(name.column, f"a set's name has 1 to {_LONGEST_NAME} bytes")
        try:
            ipset.type = SetType(kind.text)
        except ValueError:
            ipset.unread(f"sets of type {kind.text} are not supported, only {', '.join(SetType)}")
            return ipset
        self._set_options(ipset, options)
        return ipset

    def _set_options(self, ipset: _Set, words: list[Word]) -> None:
        hashed = ipset.type is not SetType.BITMAP_PORT
        ipset.family = Family.IP if hashed else None
        options: list[SetOption] = []
        rest = iter(words)
        for word in rest:
            if word.text in _SET_FLAGS:
                options.append(SetOption(word.text))
                continue
            value = next(rest, None)
            if word.text not in _SET_VALUES:
                ipset.unread(f"its option {word.text} is not supported")
                return
            if value is None:
                raise _Fault(word.column, f'"{word.text}" needs a value')
            options.append(SetOption(word.text, value.text))
            match word.text:
                case "family" if hashed and value.text in _FAMILIES:
                    ipset.family = _FAMILIES[value.text]
                case "range" if not hashed:
                    ipset.ports = _port_range(value)
                case "family" | "range":
                    raise _Fault(value.column, f'"{word.text} {value.text}" is not valid for {ipset.type}')
                case "maxelem":
                    ipset.most = _number(value)
                case "initval":
                    pass
                case _:
                    _number(value)
        ipset.options = tuple(options)
        if not hashed and not ipset.declares("range"):
            raise _Fault(words[-1].column if words else 1, "bitmap:port needs a range")

    def add(self, ipset: _Set, element: Word, options: list[Word], line: Origin) -> None:
        """Add an element to a set. Raises _Fault."""
        if ipset.type is None or ipset.reason is not None:
            return
        read: list[SetOption] = []
        nomatch = False
        rest = iter(options)
        for word in rest:
            if word.text == "nomatch":
                if ipset.type not in _NOMATCH:
                    raise _Fault(word.column, f'{ipset.type} has no "nomatch" elements')
                nomatch = True
                continue
            value = next(rest, None)
            if word.text not in _ELEMENT_VALUES:
                raise _Fault(word.column, f'unknown option "{word.text}" of an element')
            if value is None:
                raise _Fault(word.column, f'"{word.text}" needs a value')
            if word.text == "timeout" and _number(value) > 0:
                reason = f"its element {element.text} (line {line.line}) times out in {value.text} seconds"
                ipset.unread(f"{reason}, which is not modelled")
                return
            read.append(SetOption(word.text, value.text))
        default = next((o.value for o in ipset.options if o.name == "timeout"), "0")
        if default != "0" and not any(o.name == "timeout" for o in read):
            ipset.unread(f"its element {element.text} (line {line.line}) times out in {default} seconds")
            return
        try:
            for key in element_keys(
                ipset.type, ipset.family, element.text, most=ipset.most, ports=ipset.ports
            ):
                if key in ipset.elements:
                    first = ipset.elements[key].origin.line
                    raise _Fault(element.column, "the element is already in the set", f"since line {first}")
                ipset.elements[key] = SetElement(
                    key=key, nomatch=nomatch, options=tuple(read), origin=line.at(element.column)
                )
        except ElementError as error:
            raise _Fault(element.column + error.offset, error.message, error.hint) from None
        if ipset.type is not SetType.BITMAP_PORT and len(ipset.elements) > ipset.most:
            raise _Fault(element.column, f"the set is full: maxelem is {ipset.most}")


@dataclass(slots=True)
class _Listing:
    """Reads the paragraphs of ``ipset list``."""

    reader: _Reader
    name: Word | None = None
    kind: Word | None = None
    made: _Set | None = None
    line: Origin | None = None
    entries: int | None = None
    members: int | None = None

    def read(self, lines: list[Origin]) -> None:
        for line in lines:
            try:
                self._line(line)
            except _Fault as fault:
                self.reader.report(line.at(fault.column), fault.message, fault.hint)
        self._end()

    def _line(self, line: Origin) -> None:
        heading, colon, rest = line.text.partition(": ")
        column = len(heading) + 3
        if line.text.startswith("Name:"):
            self._end()
            self.name, self.line = Word(rest.strip(), column), line
        elif self.name is None:
            raise _Fault(1, 'expected "Name:"', "is this the output of ipset list?")
        elif line.text.rstrip() == "Members:":
            self.members = 0
            if self.made is None:
                raise _Fault(1, '"Members:" before "Header:"')
        elif self.members is not None:
            self.members += 1
            if self.made is not None:
                words = _words(line.text)
                self.reader.add(self.made, words[0], words[1:], line)
        elif heading == "Type" and colon:
            self.kind = Word(rest.strip(), column)
        elif heading == "Header" and colon:
            if self.kind is None:
                raise _Fault(1, '"Header:" before "Type:"')
            options = [Word(w.text, w.column + column - 1) for w in _words(rest)]
            assert self.line is not None
            self.made = self.reader.create(self.name, self.kind, options, self.line)
        elif heading == "Number of entries" and colon:
            self.entries = int(rest) if rest.isascii() and rest.isdigit() else None
        elif not line.text.startswith(_HEADINGS):
            raise _Fault(1, "not a line of ipset list")

    def _end(self) -> None:
        """Check a set after its last line."""
        if self.name is not None and self.line is not None:
            if self.made is None:
                self.reader.report(self.line, f'set "{self.name.text}" has no "Header:"')
            elif self.members is None:
                self.made.unread("its members are not shown (ipset list without -t shows them)")
            elif self.entries is not None and self.members < self.entries:
                self.made.unread(f"{self.entries - self.members} of its members are not shown")
        self.name = self.kind = self.made = self.line = self.entries = self.members = None


def _words(text: str) -> list[Word]:
    try:
        return scan(text)
    except QuoteError as error:
        raise _Fault(error.column, "a double quote is opened and never closed") from None


def _number(word: Word) -> int:
    text = word.text
    if not (text.isascii() and text.isdigit() and len(text) < 21):
        raise _Fault(word.column, f'"{text}" is not a number')
    return int(text)


def _port_range(word: Word) -> Interval:
    low, dash, high = word.text.partition("-")
    both = [int(n) if n.isascii() and n.isdigit() and len(n) < 6 else 65536 for n in (low, high)]
    if not dash or max(both) > 65535 or both[0] > both[1]:
        raise _Fault(word.column, f'"{word.text}" is not a range of ports')
    return Interval(*both)
