"""Type checks of values in nft's JSON, and checks of words that are written as text.

An entry is checked before it is used. Otherwise a string in a declaration that is written as text could end
the command and begin another one, and libnftables 1.0.6 crashes on some values of an unexpected type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from translate.jsoninput import NUMBER, TEXT, Fields, Leaf, Shape, one_or_more

__all__ = ["FAMILIES", "type_faults"]

FAMILIES: Final = ("ip", "ip6", "inet", "arp", "bridge", "netdev")
"""The families of tables, as nft writes them."""


def _word(pattern: str, expected: str) -> Leaf:
    form = re.compile(pattern)
    return Leaf(lambda value: isinstance(value, str) and form.fullmatch(value) is not None, expected)


_WORD: Final = _word(r"[A-Za-z_.][A-Za-z0-9_./-]*", "a name of letters, digits and _ . / -")
"""Names as nft's scanner recognises them (``string`` in ``scanner.l``)."""
_UNIT: Final = _word("[a-z]+", "a unit")
_NAME: Final = _word(r"[a-z0-9_]+(?: \. [a-z0-9_]+)*", "the name of a type")
_TYPE: Final = Leaf(
    lambda value: isinstance(value, dict) or one_or_more(_NAME).test(value), one_or_more(_NAME).expected
)
_STATES: Final = Leaf(
    lambda value: (
        isinstance(value, dict) and all(map(_WORD.test, value)) and all(map(NUMBER.test, value.values()))
    ),
    "an object of states and seconds",
)
_POLICY: Final = Leaf(lambda value: _UNIT.test(value) or _STATES.test(value), "a policy")
_LIST: Final = Leaf(lambda value: isinstance(value, list), "a list")
_STATEMENTS: Final = Leaf(
    lambda value: (
        isinstance(value, list)
        and all(isinstance(statement, dict) and len(statement) == 1 for statement in value)
    ),
    "a list of statements",
)

_NAMED: Final[Mapping[str, Shape]] = {
    "family": Leaf(lambda value: value in FAMILIES, f"one of {', '.join(FAMILIES)}"),
    "table": TEXT,
    "name": TEXT,
    "chain": TEXT,
    "dev": one_or_more(TEXT),
    "comment": TEXT,
}
_IN_TEXT: Final[Mapping[str, Shape]] = {
    **_NAMED,
    "table": _WORD,
    "name": _WORD,
    "comment": _word(r'[^"\n]*', "a string of one line without quotes"),
    "type": _TYPE,
    "map": _TYPE,
    "flags": one_or_more(_WORD),
    "policy": _POLICY,
    "elem": _LIST,
    "stmt": _STATEMENTS,
    **dict.fromkeys(("timeout", "gc-interval", "size", "mss", "wscale", "dport"), NUMBER),
    **dict.fromkeys(("protocol", "l3proto"), _WORD),
}
_ANYTHING: Final = Fields(optional=_NAMED, null=False)
_AS_TEXT: Final = dict.fromkeys(
    ("set", "map", "synproxy", "ct expectation", "ct timeout"), Fields(optional=_IN_TEXT, null=False)
)
"""Kinds of objects that are sometimes written as text."""

_STATEMENT: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("rate", "val", "burst"), NUMBER),
    **dict.fromkeys(("rate_unit", "burst_unit", "val_unit", "per"), _UNIT),
}
_RATES: Final = {
    "limit": Fields(required={"rate": NUMBER}, optional=_STATEMENT, null=False),
    "quota": Fields(required={"val": NUMBER}, optional=_STATEMENT, null=False),
    "ct count": Fields(required={"val": NUMBER}, optional=_STATEMENT, null=False),
}


def type_faults(kind: str, entry: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the path and the fault of each value in an entry that nft would not print."""
    shape = _AS_TEXT.get(kind, _ANYTHING)
    faults = list(shape.faults(entry))
    yield from faults
    if faults or kind not in ("set", "map"):
        return
    for index, statement in enumerate(entry.get("stmt") or ()):
        for name, rate in statement.items():
            if name in _RATES:
                yield from _RATES[name].faults(rate, ("stmt", index, name))
