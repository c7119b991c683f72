"""SNPT and DNPT as C: prefixes of IPv6 addresses that replace others."""

from __future__ import annotations

from typing import Final

from translate.bpf.chains.code import Code, Needs
from translate.bpf.chains.numbers import NumberText, literal
from translate.bpf.layout.tables import RuntimePart
from translate.ir import Family, TranslatePrefix

__all__ = ["prefix_code"]

_NEEDS: Final = Needs(parts=frozenset({RuntimePart.NPT}))
_WORD: Final = 0xFFFF
_SHORT: Final = 48
"""The longest prefix whose change is compensated in the word after the first 48 bits."""


def prefix_code(action: TranslatePrefix, number: NumberText) -> Code:
    """Return the code of a target. The lengths of its prefixes are part of the code, the rest are numbers."""
    bits = Family.IP6.bits
    arguments = (
        str(int(not action.source)),
        number(action.old, bits),
        literal(_mask(action.old_bits)),
        number(action.new, bits),
        literal(_mask(action.bits)),
        number(_adjustment(action), 16),
        str(int(action.bits <= _SHORT)),
    )
    return Code((f"if (translate_prefix(skb, p, {', '.join(arguments)}))", "\treturn DROP;"), _NEEDS)


def _mask(length: int) -> int:
    bits = Family.IP6.bits
    return (1 << bits) - (1 << bits - length)


def _adjustment(action: TranslatePrefix) -> int:
    """Return the difference of the checksums of both prefixes (``ip6t_npt_checkentry``)."""
    return (_words(action.old) - _words(action.new)) % _WORD


def _words(address: int) -> int:
    return sum(address >> 16 * n & _WORD for n in range(8))
