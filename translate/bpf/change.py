"""Two tc programs → the map updates that change the first into the second while packets pass.

Maps have no transactions: a packet may meet each entry before or after its update. Entries are therefore
written in an order in which none refers to a missing one: a chain's maps before those of its callers, which
is the order of ``emit``. They are deleted in the reverse order.

A new program is needed if the code of a chain changes, or if a map would have too many entries.
"""

from __future__ import annotations

from collections.abc import Mapping

from translate.bpf.layout.maps import MapContents, SetContents
from translate.bpf.output import BpfOutput
from translate.dataclass import dataclass, replace

__all__ = ["BpfChange", "LoadedMap", "MapChange", "change_between", "change_maps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapChange:
    """Entries of one map to write, with their values, or keys to delete; never both.

    Keys and values are bytes as in the C structures.
    """

    name: str
    written: tuple[tuple[bytes, bytes], ...] = ()
    deleted: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BpfChange:
    """The ``steps`` of a change, in order; ``replacement`` is true if the change needs a new program instead.

    ``output`` is the translation that is loaded afterwards: the new entries in maps of the old sizes.
    """

    output: BpfOutput
    steps: tuple[MapChange, ...] = ()
    replacement: bool = False

    @property
    def written(self) -> int:
        """The number of entries written."""
        return sum(len(step.written) for step in self.steps)

    @property
    def deleted(self) -> int:
        """The number of entries deleted."""
        return sum(len(step.deleted) for step in self.steps)

    def live(self) -> tuple[MapChange, ...]:
        """Return the steps for a loaded program. Raises ValueError if a new program is needed."""
        if self.replacement:
            raise ValueError("the change needs a new program")
        return self.steps

    def render(self) -> str:
        """Return the whole program, or one line per entry: ``update MAP KEY VALUE``, ``delete MAP KEY``.

        Keys and values are bytes in hexadecimal, as ``bpftool map update`` takes them after ``hex``.
        """
        if self.replacement:
            return self.output.render()
        lines = []
        for step in self.steps:
            lines += [f"update {step.name} {key.hex(' ')} : {value.hex(' ')}" for key, value in step.written]
            lines += [f"delete {step.name} {key.hex(' ')}" for key in step.deleted]
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class LoadedMap:
    """The contents of a loaded program's map, and the number of entries that it can have."""

    max_entries: int
    entries: Mapping[bytes, bytes]


def change_between(old: BpfOutput, new: BpfOutput) -> BpfChange:
    """Return the change from the loaded maps of ``old`` to those of ``new``."""
    if old.text != new.text:
        return BpfChange(output=new, replacement=True)
    return change_maps(
        {old_map.name: LoadedMap(old_map.max_entries, dict(old_map.packed())) for old_map in _contents(old)},
        new,
    )


def change_maps(loaded: Mapping[str, LoadedMap], new: BpfOutput) -> BpfChange:
    """Return the change from the maps of a loaded program with the same text to those of ``new``."""
    written: list[MapChange] = []
    deleted: list[MapChange] = []
    for now in _contents(new):
        was, after = loaded[now.name], dict(now.packed())
        before = was.entries
        if len(before.keys() | after.keys()) > was.max_entries:  # deletions come last
            return BpfChange(output=new, replacement=True)
        fresh = _difference(after, before)
        stale = tuple(key for key in before if key not in after)
        if fresh:
            written.append(MapChange(name=now.name, written=fresh))
        if stale:
            deleted.append(MapChange(name=now.name, deleted=stale))
    output = replace(
        new,
        maps=tuple(replace(now, max_entries=loaded[now.name].max_entries) for now in new.maps),
        sets=tuple(replace(now, max_entries=loaded[now.name].max_entries) for now in new.sets),
    )
    return BpfChange(output=output, steps=(*written, *reversed(deleted)))


def _contents(output: BpfOutput) -> tuple[MapContents | SetContents, ...]:
    return (*output.sets, *output.maps)


def _difference(new: Mapping[bytes, bytes], old: Mapping[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
    return tuple((key, value) for key, value in new.items() if old.get(key) != value)
