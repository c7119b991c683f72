"""Text in, :class:`~translate.ir.Ruleset` out.

``family`` finds out of which family they are; ``save`` reads what ``iptables-save`` prints: lines, tables
and chains; ``rule`` the words of one rule; ``extensions`` what each match and target means; ``chains``
checks what must hold between chains.
Anything may import :func:`read_ruleset` and :func:`read_save` from here. What is not understood is
a :class:`~translate.errors.ParseError` that says where; nothing is skipped and nothing is looked up
on the machine.
"""

from __future__ import annotations

from translate.errors import Diagnostic, ParseError
from translate.ir import Family, Origin, Ruleset
from translate.read.family import recognise_family
from translate.read.save import read_save

__all__ = ["read_ruleset", "read_save"]


def read_ruleset(data: bytes, *, name: str, family: Family | None = None) -> Ruleset:
    """Return the ruleset in ``data``, whose form is recognised; ``name`` is for diagnostics.

    ``family`` None: it is recognised, too (:mod:`translate.read.family` says how).
    Bytes that are not UTF-8 (an old comment in another encoding) are kept as they are, by
    surrogate escapes. Raises ParseError.
    """
    zero = data.find(b"\0")
    if zero >= 0:
        line = data.count(b"\n", 0, zero) + 1
        message = f"byte 0 at offset {zero}: this is a binary file, not rules"
        raise ParseError((Diagnostic(Origin(name, line), message),))
    text = data.decode("utf-8-sig", "surrogateescape")
    return read_save(text, name=name, family=family or recognise_family(text, name=name))
