"""Files as they come from other machines: byte order marks, UTF-16, and lines that end in CR LF.

Editors and shells of Windows write them. They have no meaning for the rules, and iptables-restore accepts
none of them: with CR LF, for example, a table is called ``filter\\r``. So they are removed from every input:
rules, ipsets, nodes, corpora, nftables rulesets, JSON.
"""

from __future__ import annotations

import codecs
from typing import Final

from translate.errors import Diagnostic, ParseError
from translate.ir.origin import Origin

__all__ = ["plain"]

_ENCODINGS: Final = (
    (codecs.BOM_UTF32_LE, "UTF-32"),  # first: its mark begins with that of UTF-16
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


def plain(data: bytes, *, name: str) -> bytes:
    """Return a file's contents without a byte order mark, in UTF-8 if it had one, with lines that end in LF.

    Raises ParseError for contents that are not in the encoding of their byte order mark.
    """
    for mark, encoding in _ENCODINGS:
        if data.startswith(mark):
            try:
                data = data.decode(encoding).encode()
            except UnicodeError as e:
                message = f"not the {encoding} text that its byte order mark announces"
                raise ParseError((Diagnostic(Origin(name), message),)) from e
            break
    data = data.removeprefix(codecs.BOM_UTF8)
    return data.replace(b"\r\n", b"\n") if b"\r" in data else data
