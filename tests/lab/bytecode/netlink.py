"""The messages that nft sends to the kernel, parsed from the output of ``nft --debug=mnl``.

libmnl prints a message as a table (``mnl_nlmsg_fprintf``): its type, a line for the header of each attribute,
and lines with four bytes of its contents each. ``--debug=netlink`` is easier to read, but does not print the
lengths of constants, so that matches on 172.0.0.0/16 and 172.0.0.0/8 look the same.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["Attributes", "Message", "attributes", "listed", "read_messages"]

_NFTABLES: Final = 10  # NFNL_SUBSYS_NFTABLES
_TYPE_MASK: Final = 0x3FFF  # NLA_TYPE_MASK
_NESTED: Final = 0x8000
_LINE: Final = re.compile(
    r"^\|(?: ((?:[0-9a-f]{2} ){4}) \|\t\|      data      \|"
    r"|C(\d{5})C\|C(.).C\|C(\d{5})C\|\t"
    r"| (\d{5}) \| .{4} \|\t\|  type \| flags  \|)".replace("C", r"(?:\x1b\[[0-9;]*m)?"),
    re.MULTILINE,
)
"""The parts of a line: four bytes, or an attribute's length, nesting and type, or the type of a message."""

Attributes = Mapping[int, bytes]
"""The attributes in a nest, by type. Each type occurs once, except in lists."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to nf_tables: its number (``enum nf_tables_msg_types``) and its attributes."""

    kind: int
    attributes: Attributes


def read_messages(text: str) -> Iterator[Message]:
    """Yield the messages to nf_tables, in order."""
    kind, data = -1, bytearray()
    for match in _LINE.finditer(text):
        content, length, nested, number, message = match.groups()
        if content is not None:
            data += bytes.fromhex(content)
        elif length is not None:
            data += struct.pack("=HH", int(length), int(number) | (_NESTED if nested == "N" else 0))
        else:
            if kind >= 0:
                yield Message(kind, attributes(bytes(data)))
            subsystem, kind = divmod(int(message), 0x100)
            kind, data = kind if subsystem == _NFTABLES else -1, bytearray()
    if kind >= 0:
        yield Message(kind, attributes(bytes(data)))


def attributes(data: bytes) -> Attributes:
    """Return the attributes in a nest, by type."""
    return dict(_pairs(data))


def listed(data: bytes) -> list[bytes]:
    """Return the elements of a list, whose attributes all have the same type."""
    return [value for _, value in _pairs(data)]


def _pairs(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        yield kind & _TYPE_MASK, data[at + 4 : at + length]
        at += max(4, length + 3 & ~3)
