"""One-to-one replacement of names by names of the same length.

A word keeps its shape: a letter becomes a letter of the same case, a digit becomes a digit. So names of
chains, sets and interfaces respect the kernel's limits, and names of Kubernetes objects stay valid. The
mapping of words of one shape is one to one: each character is shifted by a keyed hash of the characters
before it, from the left and then from the right, so that it depends on all of them. If the result is a word
that must be kept, it is mapped again until it is not, so the mapping stays one to one.

Interface names are shifted from the left only, which preserves prefixes: ``-i cali+`` matches the same
interfaces as before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection

from nfparity.capture.anonymise.words import HASHED_INTERFACES, PLAIN_INTERFACES

__all__ = ["Names"]

_CLASSES = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_OTHERS = (
    *(range(0xC0, 0x250), range(0x370, 0x800), range(0x3400, 0xA000), range(0x20000, 0x2A6E0)),
    range(0xDC80, 0xDD00),
)
"""Ranges of letters beyond ASCII that replace each other, of equal length in UTF-8.

The last range are bytes that are not UTF-8 (PEP 383). Other characters, such as symbols, are kept.
"""
_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_WORD = re.compile(r"[A-Za-z0-9]+|[^\x00-\x7f]+")
_STEMS = (*PLAIN_INTERFACES, *HASHED_INTERFACES)


class Names:
    """The mapping of words and names, determined by the key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._words: dict[tuple[str, int], str] = {}
        self._interfaces: dict[str, str] = {}

    def word(self, text: str, kept: Collection[str] = ()) -> str:
        """Return the replacement of a word, which is not one of the words in ``kept``."""
        if text in kept:
            return text
        made = self._cached(text, 0)
        while made in kept:
            made = self._cached(made, 0)
        return made

    def hash(self, text: str) -> str:
        """Return the replacement of a hash in base32 (``A-Z2-7``)."""
        return self._cached(text, 1)

    def name(self, text: str, kept: Collection[str] = ()) -> str:
        """Return the replacement of a name: its words are replaced, and the characters between them kept."""
        if text in kept:
            return text
        return _WORD.sub(lambda m: self.word(m.group(0)), text)

    def interface(self, text: str) -> str:
        """Return the replacement of an interface's name or of a prefix of such names."""
        made = self._interfaces.get(text)
        if made is None:
            made = "".join(self._shuffled(text[:at], char) for at, char in enumerate(text))
            self._interfaces[text] = made
        return made

    def digest(self, text: str, size: int) -> bytes:
        """Return replacement bytes for a text of another kind, such as a hardware address."""
        return hashlib.blake2b(
            text.encode("utf-8", "surrogateescape"), key=self._key, digest_size=size
        ).digest()

    def _cached(self, text: str, alphabet: int) -> str:
        word = self._words.get((text, alphabet))
        if word is None:
            once = self._shifted(text, f"l{len(text)}", alphabet)
            word = self._shifted(once[::-1], f"r{len(text)}", alphabet)[::-1]
            self._words[text, alphabet] = word
        return word

    def _shifted(self, text: str, salt: str, alphabet: int) -> str:
        made = ""
        for char in text:
            chars = _BASE32 if alphabet else _class_of(char)
            if char in chars:
                by = int.from_bytes(self.digest(f"{salt}/{made}", 4), "big")
                char = chars[(chars.index(char) + by) % len(chars)]
            elif ord(char) > 0x7F:
                others = next((block for block in _OTHERS if ord(char) in block), (ord(char),))
                by = int.from_bytes(self.digest(f"{salt}/{made}", 4), "big")
                char = chr(others[(ord(char) - others[0] + by) % len(others)])
            made += char
        return made

    def _shuffled(self, before: str, char: str) -> str:
        """Replace a character that follows ``before`` by one of its class; public prefixes are kept."""
        chars = _class_of(char)
        if char not in chars:
            return char
        stems = [s for s in _STEMS if before.startswith(s)]
        longest = max(stems, key=len) if stems else None
        if longest in PLAIN_INTERFACES and char.isdigit() and before[len(longest) + 1 :] == "":
            return char
        free = [c for c in chars if not any(s.startswith(before + c) for s in _STEMS)]
        if char not in free:
            return char
        order = sorted(free, key=lambda c: self.digest(f"i/{before}/{c}", 8))
        return order[free.index(char)]


def _class_of(char: str) -> str:
    for chars in _CLASSES:
        if char in chars:
            return chars
    return ""
