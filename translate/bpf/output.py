"""A translation to a tc program: C text, the maps that it declares, and their contents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from translate.bpf.layout.maps import MapContents, SetContents
from translate.bpf.layout.programs import Group, function_name, group_macros
from translate.bpf.layout.structures import DeclaredMap
from translate.bpf.layout.tables import CONNECTIONS, RuntimePart, runtime_maps, slot_sizes
from translate.dataclass import dataclass
from translate.errors import Note
from translate.ir import Family, Origin

__all__ = ["BpfOutput", "TranslationUnit", "remark"]

PROCESSORS: Final = 16
"""The default number of processors for which a program has slots."""

_KEEPING: Final = frozenset(
    {
        *(RuntimePart.RECENT, RuntimePart.LIMIT, RuntimePart.QUOTA, RuntimePart.HASHLIMIT),
        *(RuntimePart.FILLED_SET, RuntimePart.CONNLIMIT),
    }
)
"""The parts of the runtime that keep a state from packet to packet, other than connections and counters."""

_REMARK: Final = re.compile(r"^\t*/\* (?:line \d+|generated) \*/\n", re.MULTILINE)


def remark(origin: Origin) -> str:
    """Return the comment with the line number of a rule; :attr:`BpfOutput.source` has no such comments."""
    return f"/* line {origin.line} */" if origin.line else "/* generated */"


@dataclass(frozen=True, slots=True)
class TranslationUnit:
    """A part of a program that is compiled on its own: C text, and the functions and maps that it has."""

    text: str
    functions: tuple[str, ...]
    maps: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BpfOutput:
    """A translation: C text for BCC, and the contents of its maps.

    ``before`` and ``after`` are the runtime, which is the same for every ruleset of a ``family`` except
    for its optional ``parts``; ``chains`` is generated, with comments that name the lines of the rules.
    ``without_chains`` replaces the first two in the unit whose functions run no chain. With ``raw``,
    there are chains of table raw. ``sets`` are the ipsets. ``counters``, ``buckets`` and ``quotas`` are
    the numbers of counters of ``statistic --mode nth``, of buckets of ``-m limit`` and of quotas,
    ``counted`` that of connections in a list of ``-m connlimit``. The program looks for the ``cgroups`` of
    ``-m cgroup --path``, by their paths, when it is loaded. At most
    ``connections`` are remembered; then the least recently used are forgotten. Each of ``processors`` has
    its own slots for packets in transit. ``notes`` describe limits that iptables does not have.
    """

    before: str
    chains: str
    after: str
    without_chains: str
    raw: bool
    maps: tuple[MapContents, ...]
    sets: tuple[SetContents, ...] = ()
    family: Family = Family.IP
    parts: frozenset[RuntimePart] = frozenset()
    counters: int = 0
    buckets: int = 0
    quotas: int = 0
    counted: int = 0
    cgroups: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    connections: int = CONNECTIONS
    processors: int = PROCESSORS

    @property
    def lists(self) -> bool:
        """True if rules use lists of ``-m recent``, buckets or quotas, or change sets."""
        return not self.parts.isdisjoint(_KEEPING)

    @property
    def declared(self) -> dict[str, DeclaredMap]:
        """All maps of the program, by name."""
        runtime = self._runtime_maps(self.parts)
        return {
            declared.name: declared
            for declared in (*runtime, *(c.declared for c in self.maps), *(c.declared for c in self.sets))
        }

    def _runtime_maps(self, parts: Collection[RuntimePart]) -> tuple[DeclaredMap, ...]:
        return runtime_maps(
            self.family,
            parts,
            counters=self.counters,
            buckets=self.buckets,
            quotas=self.quotas,
            counted=self.counted,
            cgroups=len(self.cgroups),
            connections=self.connections,
            slots=slot_sizes(self.processors)["SLOTS"],
        )

    @property
    def source(self) -> str:
        """The whole program, which BCC compiles.

        Rulesets that differ only in entries of maps have the same source, except for the sizes of maps.
        """
        return self._program(_REMARK.sub("", self.chains))

    @property
    def text(self) -> str:
        """The program without the sizes of its maps."""
        return "\n".join(self._parts)

    @property
    def units(self) -> tuple[TranslationUnit, ...]:
        """The program in two units, with one entry in each map of rules or connections.

        The first has all maps, and the functions that run chains. The second has all other functions, and is
        the same for rulesets that need the same of the runtime. Rulesets that differ only in entries of maps
        have the same units. Maps are created with their real sizes later.
        """
        running = {Group.HOOKS, Group.RAW} if self.raw else {Group.HOOKS}
        return (
            self._unit(running, self.declared.values(), self._parts),
            self._unit(set(Group) - running, self._runtime_maps(()), (self.without_chains, self.after)),
        )

    @property
    def whole(self) -> TranslationUnit:
        """The program in one unit."""
        return self._unit(tuple(Group), self.declared.values(), self._parts)

    @property
    def _parts(self) -> tuple[str, str, str]:
        return self.before, _REMARK.sub("", self.chains), self.after

    def _unit(
        self, groups: Collection[Group], maps: Iterable[DeclaredMap], text: tuple[str, ...]
    ) -> TranslationUnit:
        maps = tuple(maps)
        sizes = {declared.size_macro: 1 for declared in maps if declared.size_macro}
        macros = _macros({**sizes, **slot_sizes(self.processors)})
        return TranslationUnit(
            text="\n".join((macros + group_macros(groups), *text)),
            functions=tuple(
                function_name(name) for group in Group if group in groups for name in group.programs
            ),
            maps=tuple(declared.name for declared in maps),
        )

    def render(self) -> str:
        """Return the program with the lines of its rules and the contents of its maps as comments."""
        return f"{self._program(self.chains)}\n{self._contents()}"

    def _program(self, chains: str) -> str:
        """Return the whole program as one unit, with the sizes of its maps."""
        sizes = {
            declared.size_macro: declared.size for declared in self.declared.values() if declared.size_macro
        }
        macros = _macros({**sizes, **slot_sizes(self.processors)})
        return "\n".join((macros + group_macros(tuple(Group)), self.before, chains, self.after))

    def _contents(self) -> str:
        lines = []
        for contents in self.maps:
            lines.append(f"/* {contents.name}: {' . '.join(contents.fields)}")
            for entry in contents.entries:
                key = " . ".join(f"{part:#x}" for part in entry.key)
                arguments = " ".join(f"{number:#x}" for number in entry.arguments)
                line = f" *   {key} : {entry.code} {arguments}".rstrip()
                lines.append(f"{line} (line {entry.origin.line})" if entry.origin.line else line)
            lines.append(" */")
        for members in self.sets:
            where = f" (line {members.origin.line} of its file)" if members.origin.line else ""
            lines.append(f"/* {members.name}: {' . '.join(members.fields)}{where}")
            for element in members.entries:
                line = " *   " + " . ".join(f"{word:#x}" for word in element.words)
                line += f" /{element.length}" if members.trie else ""
                line += "" if element.member else " nomatch"
                lines.append(f"{line} (line {element.origin.line})" if element.origin.line else line)
            lines.append(" */")
        return "".join(f"{line}\n" for line in lines)


def _macros(values: Mapping[str, int]) -> str:
    return "".join(f"#define {macro} {value}\n" for macro, value in values.items())
