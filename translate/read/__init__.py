"""Text in, :class:`~translate.ir.Ruleset` out.

``forms`` recognises the form of an input and ``family`` its address family; ``extract`` finds rules on a page
of prose. ``save``, ``listing`` and ``ipset`` each read the output of one command. They share, from the bottom
up: ``spelling`` (words, numbers, names, addresses, ports), ``extensions`` (the meaning of each match and
target), ``rule`` (one rule) and ``tables`` (chains and the checks between them).

Other packages import the names of ``__all__``. Text that is not understood raises
:class:`~translate.errors.ParseError` with its position; no line is skipped, and no names are looked up on
this machine.
"""

from __future__ import annotations

import re
from typing import Final, assert_never

from translate.collector import collector_paused
from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, Ruleset, TableName
from translate.plaintext import plain
from translate.read.forms import InputForm, family_of, recognise_form
from translate.read.ipset import IpSets, SetForm, read_ipsets, with_sets
from translate.read.save import read_fragment, read_rules, read_save

__all__ = [
    "InputForm",
    "IpSets",
    "SetForm",
    "decoded",
    "family_of",
    "read_ipsets",
    "read_pieces",
    "read_ruleset",
    "read_save",
    "recognise_form",
    "with_sets",
]


@collector_paused()
def read_ruleset(
    data: bytes,
    *,
    name: str,
    family: Family | None = None,
    form: InputForm | None = None,
    table: TableName | None = None,
) -> Ruleset:
    """Return the ruleset in ``data``; ``name`` is for diagnostics.

    With ``family`` or ``form`` None it is recognised (:mod:`translate.read.family`,
    :mod:`translate.read.forms`). ``table`` is for the forms that do not name their table; None means filter
    for ``iptables -S`` output, and for listings see :mod:`translate.read.listing`. Bytes that are not UTF-8
    (an old comment in another encoding) are kept as surrogate escapes. Raises ParseError.
    """
    text = decoded(data, name)
    form = form or recognise_form(text)
    family = family or family_of(text, form, name=name)
    match form:
        case InputForm.SAVE:
            return read_save(text, name=name, family=family)
        case InputForm.RESTORE:
            return read_fragment(_numbered(text), name=name, family=family)
        case InputForm.RULES:
            where = table or TableName.FILTER
            return read_rules(_numbered(text), name=name, family=family, table=where)
        case InputForm.LISTING:
            from translate.read.listing import read_listing  # its many patterns take long to compile

            return read_listing(_numbered(text), name=name, family=family, table=table)
        case _:
            assert_never(form)


@collector_paused()
def read_pieces(
    data: bytes, *, name: str, family: Family | None = None, table: TableName | None = None
) -> tuple[Ruleset, ...]:
    """Return the rulesets of every listing and dump on a page (:mod:`translate.read.extract`)."""
    from translate.read import extract

    return extract.read_pieces(decoded(data, name), name=name, family=family, table=table)


def _numbered(text: str) -> list[tuple[int, str]]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return list(enumerate(lines, 1))


_PROGRAM: Final = re.compile(rb"(match bpf [0-9 ,]+)\0")
"""A program in a listing, which ends with a zero (``bpf_print_code`` of iptables)."""


def decoded(data: bytes, name: str) -> str:
    """Return the text of an input. Raises ParseError for a binary file."""
    data = plain(data, name=name)
    if b"\0" in data:
        data = _PROGRAM.sub(rb"\1", data)
    zero = data.find(b"\0")
    if zero >= 0:
        line = data.count(b"\n", 0, zero) + 1
        message = f"byte 0 at offset {zero}: this is a binary file, not rules"
        column = zero - data.rfind(b"\n", 0, zero)
        raise ParseError((Diagnostic(Origin(name, line, column), message),))
    return data.decode("utf-8", "surrogateescape")
