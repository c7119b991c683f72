"""The forms of input, and their recognition."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

from translate.ir import Family
from translate.read.family import lines_of, recognise_family

__all__ = ["InputForm", "family_of", "recognise_form"]


class InputForm(StrEnum):
    """A form of input, spelled as ``--input`` takes it."""

    SAVE = "save"
    """Output of ``iptables-save``, with or without counters."""

    RESTORE = "restore"
    """A fragment for ``iptables-restore --noflush``, as kube-proxy writes it."""

    RULES = "rules"
    """Output of ``iptables -S``: one table."""

    LISTING = "listing"
    """Output of ``iptables -L``: one table."""


_CHANGES: Final = re.compile("(?:-[DFX]|--flush|--delete|--delete-chain) ")
_CHANGED: Final = re.compile(rf"\n{_CHANGES.pattern}")
_COMMANDS: Final = ("-P ", "-N ", "-A ")
_ADDRESS6: Final = re.compile(r"[ !](?:[0-9a-f]{0,4}:){2}[0-9a-f:]*(?:/\d+)?(?= |$)", re.MULTILINE)
_COMMENT: Final = re.compile(r"/\*.*?\*/")


def recognise_form(text: str) -> InputForm:
    """Return the form of a text, recognised by its first line that is not a comment and by its commands.

    Text of no known form is read as ``iptables-save`` output, whose reader reports the faults.
    """
    for line in lines_of(text):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("*"):
            break
        from translate.read.listing import CHAIN_HEADER, COLUMNS  # their package takes long to import

        if line.startswith("Chain ") or CHAIN_HEADER.fullmatch(line) or COLUMNS.fullmatch(line):
            return InputForm.LISTING
        if line.startswith(_COMMANDS):
            return InputForm.RULES
        break
    return InputForm.RESTORE if _CHANGES.match(text) or _CHANGED.search(text) else InputForm.SAVE


def family_of(text: str, form: InputForm, *, name: str) -> Family:
    """Return the family of a text (:mod:`translate.read.family`); a listing shows it by its addresses."""
    if form is InputForm.LISTING and _ADDRESS6.search(_COMMENT.sub("", text)):
        return Family.IP6
    return recognise_family(text, name=name)
