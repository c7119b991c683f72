"""The options that belong to the rule itself: addresses, interfaces, protocol, fragment, counters."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from translate.ir import Counters, Family, Field, FieldTest, Hook, Interval, Name, Option
from translate.read.spelling.address import address_test
from translate.read.spelling.errors import OptionError
from translate.read.spelling.names import protocol_number

__all__ = [
    "BASE_ARGUMENTS",
    "BASE_ATTACHED",
    "BASE_INVERTIBLE",
    "BASE_OPTIONS",
    "BASE_ORDER",
    "NO_INTERFACE",
    "OTHER_OPTIONS",
    "RuleError",
    "base_meaning",
    "parse_counter",
    "parse_counters",
    "parse_protocol",
]

_LONGEST_INTERFACE: Final = 15  # IFNAMSIZ, less its NUL

BASE_OPTIONS: Final = MappingProxyType(
    {
        "-s": "-s",
        "--source": "-s",
        "--src": "-s",
        "-d": "-d",
        "--destination": "-d",
        "--dst": "-d",
        "-i": "-i",
        "--in-interface": "-i",
        "-o": "-o",
        "--out-interface": "-o",
        "-p": "-p",
        "--protocol": "-p",
        "-f": "-f",
        "--fragments": "-f",
        "-m": "-m",
        "--match": "-m",
        "-j": "-j",
        "--jump": "-j",
        "-g": "-g",
        "--goto": "-g",
        "-c": "-c",
        "--set-counters": "-c",
        "-v": "-v",
        "--verbose": "-v",
        "-4": "-4",
        "--ipv4": "-4",
        "-6": "-6",
        "--ipv6": "-6",
    }
)
"""Every spelling of an option of the rule itself, and the spelling of iptables-save."""

OTHER_OPTIONS: Final = (
    *(
        "--append",
        "--delete",
        "--check",
        "--insert",
        "--replace",
        "--list",
        "--list-rules",
        "--flush",
        "--zero",
    ),
    *("--new-chain", "--delete-chain", "--rename-chain", "--policy", "--table", "--numeric", "--wait"),
    *("--wait-interval", "--exact", "--version", "--help", "--line-numbers", "--modprobe"),
)
"""Options of iptables that are not part of a rule, but can make an abbreviation ambiguous."""

BASE_ARGUMENTS: Final = MappingProxyType({"-f": 0, "-v": 0, "-4": 0, "-6": 0})
"""The number of values of the options that do not have exactly one."""

BASE_ATTACHED: Final = frozenset({"-m", "-g", "-c"})
"""Options whose value may be attached (``--match=tcp``, ``-mtcp``).

For other options iptables takes the whole word as the value (``argv[optind - 1]`` in ``do_parse``).
"""

BASE_INVERTIBLE: Final = frozenset({"-s", "-d", "-i", "-o", "-p", "-f", "-4", "-6"})
"""Options that ``!`` may precede; before the last two it has no effect."""

BASE_ORDER: Final = ("-s", "-d", "-i", "-o", "-p", "-f")
"""The options of the rule itself, in the order in which iptables-save prints them."""

NO_INTERFACE: Final = MappingProxyType(
    {
        "-i": frozenset({Hook.OUTPUT.value, Hook.POSTROUTING.value}),
        "-o": frozenset({Hook.PREROUTING.value, Hook.INPUT.value}),
    }
)
"""Built-in chains in which iptables refuses the option, because there is no such interface."""


class RuleError(Exception):
    """A fault in a rule, with the index of the wrong word and the ``offset`` in it."""

    def __init__(self, word: int, message: str, hint: str | None = None, *, offset: int = 0) -> None:
        self.word = word
        self.message = message
        self.hint = hint
        self.offset = offset
        super().__init__(message)


def base_meaning(
    family: Family, name: str, text: str, word: int, *, negated: bool
) -> tuple[Option, FieldTest | None]:
    """Return the spelling and the test of ``-s``, ``-d``, ``-i``, ``-o``, ``-p`` or ``-f``.

    ``word`` is the index of the value, for faults. The test is None if every packet passes.
    """
    option = Option(name, () if name == "-f" else (text,), negated)
    match name:
        case "-s" | "-d":
            where = Field.SADDR if name == "-s" else Field.DADDR
            try:
                return option, address_test(family, where, text, negated=negated, option=0)
            except OptionError as error:
                raise RuleError(word, error.message, error.hint, offset=error.offset) from None
        case "-i" | "-o":
            where = Field.IIF if name == "-i" else Field.OIF
            return option, _interface_test(where, text, word, negated=negated)
        case "-p":
            number = protocol_number(text)
            assert number is not None  # parse_protocol has checked it
            if number == 0:
                return option, None
            value = (Interval.point(number),)
            return option, FieldTest(field=Field.L4PROTO, values=value, negated=negated)
        case _:
            if family is Family.IP6:
                raise RuleError(word - 1, "-f is for IPv4 only")
            value = (Interval.point(1),)
            return option, FieldTest(field=Field.FRAGMENT, values=value, negated=negated)


def parse_counters(words: list[str], first: int) -> Counters:
    """Return the two values of ``-P … -c``; raises RuleError."""
    return Counters(parse_counter(words[first], first), parse_counter(words[first + 1], first + 1))


def parse_counter(text: str, word: int) -> int:
    """Return a counter as sscanf(3) reads it, which ignores text after the digits."""
    match = _COUNTER.match(text)
    if match is None:
        raise RuleError(word, f'"{text}" is not a counter')
    return int(match[1]) % (1 << 64)


_COUNTER: Final = re.compile(r"[ \t]*([+-]?[0-9]{1,20})(?![0-9])")


def parse_protocol(text: str, word: int, *, negated: bool) -> int | None:
    """Return the protocol that a rule names; None for all protocols. Raises RuleError."""
    number = protocol_number(text)
    if number is None:
        raise RuleError(word, f'unknown protocol "{text}"', "write its number")
    if number == 0 and negated:
        raise RuleError(word, '"! -p all" matches no packet')
    return number or None


def _interface_test(where: Field, text: str, word: int, *, negated: bool) -> FieldTest | None:
    """Return the test of ``-i`` or ``-o``, or None for ``+``, which is every interface.

    A negated ``+`` never holds and becomes a test that is always false (``ip_packet_match``). Raises
    RuleError for the name ``!``, which iptables takes only behind another ``!`` and does not read back.
    """
    length = len(text.encode("utf-8", "surrogateescape"))
    if not 1 <= length <= _LONGEST_INTERFACE:
        raise RuleError(
            word, f'interface name "{text}" has {length} bytes', f"it must have 1 to {_LONGEST_INTERFACE}"
        )
    if text == "!":
        raise RuleError(word, 'an interface named "!" cannot be saved', "iptables reads it as a negation")
    if text == "+" and not negated:
        return None
    name = Name(text[:-1], wildcard=True) if text.endswith("+") else Name(text)
    return FieldTest(field=where, values=(name,), negated=negated)
