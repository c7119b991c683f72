"""Anonymisation of the output of ``ipvsadm-save -n``."""

from __future__ import annotations

import re

from harness.files.errors import CaptureError
from nfparity.capture.anonymise.mapping import Mapping

__all__ = ["anonymise_services"]

_PLACE = re.compile(r"(\[[\da-fA-F:.]+\]|[\d.]+):(\d+)")
_WORD = re.compile(r"-{1,2}[a-zA-Z-]+|[a-z][a-z0-9,-]*|\d+")


def anonymise_services(text: str, mapping: Mapping) -> str:
    """Return anonymised services. Raises CaptureError for a line that ipvsadm cannot have written."""
    made = []
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if words and words[0] not in ("-A", "-a"):
            raise CaptureError(f"line {number} is not output of ipvsadm-save: {line[:60]!r}")
        made.append(" ".join(_word(word, mapping, line, number) for word in words))
    return "\n".join(made)


def _word(word: str, mapping: Mapping, line: str, number: int) -> str:
    place = _PLACE.fullmatch(word)
    if place is not None:
        host, port = place.groups()
        if host.startswith("["):
            return f"[{mapping.address(host[1:-1])}]:{port}"
        return f"{mapping.address(host)}:{port}"
    if not _WORD.fullmatch(word):
        raise CaptureError(f"line {number} is not output of ipvsadm-save: {line[:60]!r}")
    return word
