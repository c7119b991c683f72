"""Anonymisation of the output of ``ipset save``."""

from __future__ import annotations

import re

from harness.files.errors import CaptureError
from nfparity.capture.anonymise.mapping import Mapping

__all__ = ["anonymise_sets"]

_WORD = re.compile(r'"([^"]*)"|(\S+)')
"""Only comments are quoted; they contain neither quotes nor escapes."""
_PORT = re.compile(r"(?:[a-z0-9-]+:)?\d+(?:-\d+)?|(?:icmp|icmpv6):[\w/-]+|0x[\da-fA-F]+(?:/0x[\da-fA-F]+)?")


def anonymise_sets(text: str, mapping: Mapping) -> str:
    """Return an anonymised dump. Raises CaptureError for a line that ipset save cannot have written."""
    made = []
    types: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        words = [m.group(2) if m.group(1) is None else m.group(1) for m in _WORD.finditer(line)]
        if not words or words[0].startswith("#"):
            made.append("")
            continue
        if len(words) < 3 or words[0] not in ("create", "add"):
            raise CaptureError(f"line {number} is not output of ipset save: {line[:60]!r}")
        verb, name, what, *rest = words
        if verb == "create":
            types[name] = what
            rest = [mapping.address(word) for word in rest]
        else:
            what = ",".join(_part(part, types.get(name, ""), mapping) for part in what.split(","))
            rest = _options(rest, mapping)
        made.append(" ".join([verb, mapping.chain(name), what, *rest]))
    return "\n".join(made)


def _part(part: str, kind: str, mapping: Mapping) -> str:
    if kind.startswith("list:"):
        return mapping.chain(part)
    if mapping.is_address(part):
        return mapping.address(part)
    if _PORT.fullmatch(part):
        return part
    physical, colon, name = part.rpartition(":")
    return physical + colon + mapping.interface(name)


def _options(words: list[str], mapping: Mapping) -> list[str]:
    """Anonymise options; ``comment`` as an option of a set has no value."""
    made: list[str] = []
    rest = iter(words)
    for word in rest:
        made.append(mapping.address(word))
        if word == "comment":
            made.append(f'"{mapping.comment(next(rest, ""))}"')
    return made
