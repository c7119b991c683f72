"""The numbers of C that structures and maps consist of, and the lock of an entry."""

from __future__ import annotations

from typing import Final

from translate.bpf.layout.structures import Number, Opaque

__all__ = ["SPIN_LOCK", "U8", "U16", "U32", "U64"]

U8, U16, U32, U64 = (Number(f"u{8 * size}", size) for size in (1, 2, 4, 8))
"""Unsigned integers, by their bits."""

SPIN_LOCK: Final = Opaque("struct bpf_spin_lock", 4, 4)
"""The lock of an entry; no program holds two."""
