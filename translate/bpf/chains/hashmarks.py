"""Marks from a hash as C."""

from __future__ import annotations

from typing import Final

from translate.bpf.chains.code import Code, Needs
from translate.bpf.chains.numbers import literal
from translate.bpf.layout.tables import RuntimePart
from translate.ir import HashMark

__all__ = ["hash_mark_code"]

_HASH: Final = Needs(parts=frozenset({RuntimePart.HMARK}))


def hash_mark_code(action: HashMark) -> Code:
    """Return the code of HMARK. Its numbers stay in the text: they are too many for an entry of a map."""
    call = "fields_of_connection(p, &f)" if action.by_connection else "fields_of_packet(skb, p, &f)"
    numbers = {
        "source_mask": action.source_mask,
        "destination_mask": action.destination_mask,
        "port_mask": action.port_mask,
        "port_set": action.port_set,
        "protocol_mask": action.protocol_mask,
        "seed": action.seed,
        "modulus": action.modulus,
        "offset": action.offset,
    }
    rule = ", ".join(f".{name} = {literal(number)}" for name, number in numbers.items())
    lines = (
        "{",
        "\tstruct hashed_fields f = {};",
        f"\tif ({call})",
        f"\t\tmark_by_hash(p, &f, (struct hash_rule){{ {rule} }});",
        "}",
    )
    return Code(lines, _HASH)
