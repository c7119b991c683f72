"""Two tc programs → the map updates that make the first into the second, while packets pass.

Maps have no transactions: a packet sees each entry as it was or as it will be. So entries are written in
an order in which a packet is always led to something that is there: what is called before what calls it
(``emit`` has a chain's maps before its callers'), and nothing goes before all that leads to it has gone.

Where entries are not enough, another program is needed: chains of a shape that was not there yet, or more
entries than a map takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from translate.bpf.maps import MapContents, SetContents
from translate.bpf.output import BpfOutput

__all__ = ["BpfChange", "LoadedMap", "MapChange", "change_between", "change_maps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MapChange:
    """Entries of one map to write, with their values, and keys to delete; never both.

    Keys and values are as the C structures have them.
    """

    name: str
    written: tuple[tuple[bytes, bytes], ...] = ()
    deleted: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BpfChange:
    """``steps``, in the order in which they have to be made; with ``replacement`` another program is needed.

    ``output`` is what is loaded then: the new entries, in maps that take as many as they took.
    """

    output: BpfOutput
    steps: tuple[MapChange, ...] = ()
    replacement: bool = False

    @property
    def written(self) -> int:
        """How many entries are written."""
        return sum(len(step.written) for step in self.steps)

    @property
    def deleted(self) -> int:
        """How many entries are deleted."""
        return sum(len(step.deleted) for step in self.steps)

    def live(self) -> tuple[MapChange, ...]:
        """Return what a loaded program's maps are to be told. Raises ValueError where it must be another."""
        if self.replacement:
            raise ValueError("another program is needed")
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
    """What a map of a loaded program holds, and how many entries it takes."""

    max_entries: int
    entries: Mapping[bytes, bytes]


def change_between(old: BpfOutput, new: BpfOutput) -> BpfChange:
    """Return the change that turns the maps of ``old``, as they are loaded, into those of ``new``."""
    if old.text != new.text:
        return BpfChange(output=new, replacement=True)
    return change_maps(
        {one.name: LoadedMap(one.max_entries, dict(one.packed())) for one in _contents(old)}, new
    )


def change_maps(loaded: Mapping[str, LoadedMap], new: BpfOutput) -> BpfChange:
    """Return the change that turns the maps of a loaded program with the same text into those of ``new``."""
    written: list[MapChange] = []
    deleted: list[MapChange] = []
    for now in _contents(new):
        was, after = loaded[now.name], dict(now.packed())
        before = was.entries
        if len(before.keys() | after.keys()) > was.max_entries:  # what is deleted is deleted last
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
