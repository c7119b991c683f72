"""The declaration of an extension: its options, and a function from options to meaning.

The rule reader is independent of extensions; it collects options by these declarations (number of arguments,
whether ``!`` is allowed, aliases) and passes them to ``meaning`` as :class:`Options`. A ``meaning`` raises
:class:`OptionError` and never guesses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from translate.dataclass import dataclass, field
from translate.ir import (
    Action,
    Family,
    Field,
    FieldTest,
    Hidden,
    Hook,
    Interval,
    Option,
    Protocol,
    TableName,
    Test,
    field_bits,
)
from translate.read.spelling.errors import OptionError
from translate.read.spelling.numbers import leading_digits, unsigned

__all__ = [
    "MARK_BITS",
    "Context",
    "MatchExtension",
    "OptionSpec",
    "Options",
    "TargetExtension",
    "between",
    "first_named",
    "mark_test",
    "parse_mark",
    "parse_number",
    "parse_range",
    "parse_rate",
    "parse_value_mask",
]

MARK_BITS: Final = 0xFFFFFFFF
_SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionSpec:
    """One option: its name as ``iptables-save`` prints it, other spellings, and its shape.

    ``repeated`` options may be given more than once. The value of an ``optional`` one is the next word,
    unless that begins with ``-`` or ``!``. ``refused`` is the reason why an option of iptables is not
    modelled: a rule with it is kept as spelled, and ``hides`` is the unknown part of the rule. ``kind`` is
    the feature by which translations refuse it, and ``removed_in`` the Linux that first lacked it.
    """

    name: str
    arguments: int = 1
    aliases: tuple[str, ...] = ()
    invertible: bool = False
    repeated: bool = False
    optional: bool = False
    refused: str | None = None
    hides: Hidden | None = None
    kind: str = ""
    removed_in: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The part of a rule outside of an extension on which its meaning may depend.

    ``protocol`` is the number of ``-p``, None if it is missing, ``all`` or negated. ``protocol_before`` is
    the number of ``-p``, negated or not, if it precedes the extension's last option: some options test it
    when they are read.
    """

    family: Family
    table: TableName
    protocol: int | None
    protocol_before: int | None = None

    @property
    def sees_fragments(self) -> bool:
        """True if a later fragment can reach the rule.

        None reaches ``nat``: only packets with a conntrack entry do (``nf_nat_inet_fn``), and conntrack needs
        reassembled packets (``nf_defrag_ipv4``, priority -400).
        """
        return self.table is not TableName.NAT

    def require(self, extension: str, *protocols: Protocol) -> None:
        """Raise OptionError unless ``-p`` names one of ``protocols``, as the kernel requires."""
        if self.protocol not in protocols:
            names = " or ".join(f'"-p {p.name.lower()}"' for p in protocols)
            raise OptionError(f"{extension} needs {names} in the same rule")

    def require_before(self, extension: str, *protocols: Protocol) -> None:
        """Raise OptionError unless ``-p`` names one of ``protocols`` and precedes the option."""
        self.require(extension, *protocols)
        if self.protocol_before is None:
            hint = "iptables tests the protocol when it reads the option"
            raise OptionError(f'{extension} needs "-p" before it', hint=hint)


class Options(tuple[Option, ...]):
    """The options that a rule gives to one extension, in order, under their canonical names."""

    __slots__ = ()

    def find(self, name: str) -> tuple[int, Option] | None:
        """Return the index and the option called ``name``, or None."""
        for index, option in enumerate(self):
            if option.name == name:
                return index, option
        return None

    def has(self, name: str) -> bool:
        """Return True if the option was given."""
        return self.find(name) is not None

    def need(self, name: str, extension: str) -> tuple[int, Option]:
        """Return the option. Raises OptionError if it is missing, because the extension requires it."""
        occurrence = self.find(name)
        if occurrence is None:
            raise OptionError(f'{extension} needs the option "{name}"')
        return occurrence


def _by_spelling(options: tuple[OptionSpec, ...]) -> Mapping[str, OptionSpec]:
    return MappingProxyType({text: spec for spec in options for text in (spec.name, *spec.aliases)})


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchExtension:
    """A match (``-m name``). ``meaning`` returns tests that all must hold; None if it is not modelled.

    ``fields`` are those on which an unmodelled match depends: packets with equal fields have the same result.
    With None, each packet may have another result. ``hooks`` are those in which the kernel allows it
    (``struct xt_match``), None for all. ``effect`` returns what the match does to the packets for which it
    holds; a rule with a test behind it is kept as spelled. ``reason`` and ``kind`` are those of a target.
    """

    name: str
    options: tuple[OptionSpec, ...]
    meaning: Callable[[Options, Context], tuple[Test, ...]] | None
    family: Family | None = None
    hides: Hidden = Hidden.TESTS
    fields: tuple[Field, ...] = ()
    hooks: frozenset[Hook] | None = None
    reason: str = ""
    kind: str = ""
    effect: Callable[[Options], tuple[Action, ...]] | None = None
    spellings: Mapping[str, OptionSpec] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spellings", _by_spelling(self.options))


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetExtension:
    """A target (``-j name``), with the tables and hooks that the kernel allows it in (``struct xt_target``).

    ``tables`` None allows every table; ``hooks`` are those from which its chain may be reached. ``meaning``
    is None if it is not modelled. Then ``hides`` is the unknown part of the rule, ``reason`` explains why it
    cannot be translated at all, ``kind`` is the feature by which translations refuse it, and ``removed_in``
    is the Linux that first lacked it. A rule that has the option ``alone`` and any other option
    of the target is kept as spelled. For a target whose effect is that of tests, ``meaning`` returns tests
    that always hold instead of an action.
    """

    name: str
    options: tuple[OptionSpec, ...]
    meaning: Callable[[Options, Context], Action | tuple[Test, ...]] | None
    family: Family | None = None
    hides: Hidden = Hidden.ACTION
    reason: str = ""
    kind: str = ""
    removed_in: str = ""
    alone: str = ""
    tables: frozenset[TableName] | None = None
    hooks: frozenset[Hook] | None = None
    spellings: Mapping[str, OptionSpec] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "spellings", _by_spelling(self.options))


def parse_number(text: str, most: int, *, option: int, offset: int = 0) -> int:
    """Return a number from 0 to ``most`` written in decimal, ``0x`` or octal form (``xtables_strtoui``)."""
    value = unsigned(text, most)
    if value is None:
        raise OptionError(f'"{text}" is not a number from 0 to {most}', option=option, offset=offset)
    return value


def parse_range(text: str, most: int, *, option: int) -> tuple[int, int]:
    """Return both ends of ``low:high`` or of one number; a missing end is 0 or ``most``.

    As in ``xtopt_parse_mint``.
    """
    low_text, colon, high_text = text.partition(":")
    low = parse_number(low_text, most, option=option) if low_text else 0
    if not colon:
        return low, low
    after = len(low_text) + 1
    return low, parse_number(high_text, most, option=option, offset=after) if high_text else most


def parse_mark(text: str, *, option: int, offset: int = 0) -> int:
    """Return a 32-bit number written in decimal, ``0x`` or octal form (``xtables_strtoui``)."""
    value = unsigned(text, MARK_BITS)
    if value is None:
        raise OptionError(f'"{text}" is not a number from 0 to 0xffffffff', option=option, offset=offset)
    return value


def parse_rate(text: str, *, option: int) -> tuple[int, int]:
    """Return the number of packets and the seconds of the unit of ``3/minute`` (``parse_rate``)."""
    number, slash, unit = text.partition("/")
    packets = leading_digits(number)
    name = first_named(_SECONDS, unit) if slash else "second"
    if not packets or name is None or (slash and not unit):
        hint = "such as 3/minute; the unit is second, minute, hour or day"
        raise OptionError(f'"{text}" is not a rate', option=option, hint=hint)
    return packets, _SECONDS[name]


def parse_value_mask(option: Option, *, index: int) -> tuple[int, int]:
    """Return the two numbers of ``value[/mask]``; without a mask it has every bit."""
    value_text, slash, mask_text = option.arguments[0].partition("/")
    value = parse_mark(value_text, option=index)
    mask = parse_mark(mask_text, option=index, offset=len(value_text) + 1) if slash else MARK_BITS
    return value, mask


def mark_test(options: Options, where: Field, name: str) -> FieldTest:
    """Return the test of a mark by ``--mark`` of the match ``name``. Raises OptionError."""
    index, option = options.need("--mark", name)
    value, mask = parse_value_mask(option, index=index)
    bits = None if mask == MARK_BITS else mask
    return FieldTest(field=where, values=(Interval.point(value),), mask=bits, negated=option.negated)


def between(where: Field, low: int, high: int, *, negated: bool, family: Family) -> FieldTest:
    """Return the test that a field's value is from ``low`` to ``high``.

    A range that ends before it begins contains no value; negated, the test holds for every packet with the
    field.
    """
    if low <= high:
        return FieldTest(field=where, values=(Interval(low, high),), negated=negated)
    whole = Interval(0, (1 << field_bits(where, family)) - 1)
    return FieldTest(field=where, values=(whole,), negated=not negated)


def first_named(names: Iterable[str], start: str) -> str | None:
    """Return the first of ``names`` that begins with ``start``, upper or lower case (``strncasecmp``)."""
    folded = start.lower()
    return next((name for name in names if name.lower().startswith(folded)), None)
