"""Copies of packets and outcomes with some fields replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["with_fields"]

if TYPE_CHECKING:
    # mypy checks the fields of ``replace`` against the dataclass, and knows it by this name only.
    from dataclasses import replace as with_fields
else:

    def with_fields(original, /, **fields):
        """Return a copy of a dataclass without slots, in a fraction of the time of ``dataclasses.replace``.

        Packets change at every hook. Names of fields are checked by mypy alone.
        """
        copy = object.__new__(original.__class__)
        object.__setattr__(copy, "__dict__", original.__dict__ | fields)
        return copy
