"""Notes of translations as lines, one for each kind of limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from translate.errors import Note

__all__ = ["note_lines"]

_SHOWN = 8


def note_lines(notes: Iterable[Note]) -> Iterator[str]:
    """Yield the first note of each backend and feature in full, followed by the lines of further rules."""
    kinds: dict[tuple[str, str], list[Note]] = {}
    for note in notes:
        kinds.setdefault((note.backend, note.feature), []).append(note)
    for first, *others in kinds.values():
        line = f"known limit: {first.render()}"
        if others:
            places = ", ".join(str(n.origin.line) for n in others[:_SHOWN])
            more = ", …" if len(others) > _SHOWN else ""
            line += f"; the same for {len(others)} more (lines {places}{more})"
        yield line
