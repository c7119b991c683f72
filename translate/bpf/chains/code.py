"""Generated C, together with the declarations that it needs elsewhere in the program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Final, Self

from translate.bpf.layout.maps import MapContents, SetContents
from translate.bpf.layout.structures import DeclaredMap, Structure
from translate.bpf.layout.tables import RuntimePart
from translate.dataclass import dataclass

__all__ = ["NO_NEEDS", "Code", "Condition", "Declaration", "Feature", "Needs", "Variable"]


class Variable(Enum):
    """A local variable of a chain's function; the value is its declaration."""

    VERDICT = "int verdict;"
    DRAWN = "u32 drawn;"


class Feature(Enum):
    """A behaviour of the runtime that is compiled only if rules use it; the value is its macro."""

    REUSES_SOURCES = "REUSES_SOURCES"
    """``get_unique_tuple`` looks for an earlier binding of the same source."""
    NOTRACK = "HAS_NOTRACK"
    """Some packets bypass connection tracking."""
    OPTIONS = "READS_OPTIONS"
    """Rules test headers of IPv6 with options."""
    ROUTING = "READS_ROUTING"
    """Rules test routing headers of IPv6."""
    SEGMENTS = "READS_SEGMENTS"
    """Rules test the first 40 bytes of routing headers."""
    FRAGMENTS = "READS_FRAGMENTS"
    """Rules test fragment headers of IPv6."""
    PASSES_FRAGMENTS = "PASSES_FRAGMENTS"
    """Nothing makes the kernel reassemble fragments before the rules."""
    MOBILITY = "READS_MOBILITY"
    """Rules test Mobility Headers of IPv6."""
    DCCP = "READS_DCCP"
    """Rules test the types of packets of DCCP."""
    DCCP_OPTIONS = "READS_DCCP_OPTIONS"
    """Rules test options of DCCP."""
    TCP_OPTIONS = "READS_TCP_OPTIONS"
    """Rules test options of TCP, or change them."""
    AH = "READS_AH"
    """Rules test AH headers."""
    CLOCK = "READS_CLOCK"
    """Rules test the node's clock."""
    INDEXES = "READS_INDEXES"
    """Rules test the SPI of ESP or the CPI of IPComp."""
    FRAMES = "READS_FRAMES"
    """Rules test the kind of the frame or the hardware address of its sender."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """Lines of C before the chains: a structure with its map, or a function."""

    lines: tuple[str, ...]

    @classmethod
    def of_map(cls, declared: DeclaredMap, comment: str) -> Self:
        """Return the declarations of a map and of its key, after a comment."""
        key = declared.key.inline() if isinstance(declared.key, Structure) else ""
        return cls((f"/* {comment} */", *([key] if key else []), *declared.declaration().splitlines()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Everything that lines of C need from the rest of the program.

    ``variables`` belong to the function of the chain, everything else to the whole program. ``counters`` is
    the number of counters of ``statistic --mode nth``.
    """

    variables: frozenset[Variable] = frozenset()
    parts: frozenset[RuntimePart] = frozenset()
    features: frozenset[Feature] = frozenset()
    declarations: tuple[Declaration, ...] = ()
    maps: tuple[MapContents, ...] = ()
    sets: tuple[SetContents, ...] = ()
    counters: int = 0

    @classmethod
    def of_all(cls, several: Iterable[Needs]) -> Self:
        """Return the union of several needs, with each declaration and set once, in order."""
        nonempty = [needs for needs in several if needs is not NO_NEEDS]
        sets = {contents.name: contents for needs in nonempty for contents in needs.sets}
        return cls(
            variables=frozenset().union(*(needs.variables for needs in nonempty)),
            parts=frozenset().union(*(needs.parts for needs in nonempty)),
            features=frozenset().union(*(needs.features for needs in nonempty)),
            declarations=tuple(dict.fromkeys(d for needs in nonempty for d in needs.declarations)),
            maps=tuple(contents for needs in nonempty for contents in needs.maps),
            sets=tuple(sets.values()),
            counters=sum(needs.counters for needs in nonempty),
        )


NO_NEEDS: Final = Needs()


@dataclass(frozen=True, slots=True)
class Code:
    """Lines of C inside a chain's function, with the declarations that they need."""

    lines: tuple[str, ...] = ()
    needs: Needs = NO_NEEDS

    @classmethod
    def joined(cls, several: Sequence[Code]) -> Code:
        """Return several pieces of code as one."""
        if len(several) == 1:
            return several[0]
        lines = tuple(line for code in several for line in code.lines)
        return cls(lines, Needs.of_all(code.needs for code in several))

    def indented(self) -> tuple[str, ...]:
        """Return the lines one level deeper."""
        return tuple(f"\t{line}" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition in C, with the declarations that it needs. ``1`` is always true."""

    text: str
    needs: Needs = NO_NEEDS

    @classmethod
    def every(cls, several: Sequence[Condition]) -> Condition:
        """Return the condition that all of ``several`` hold, evaluated in order."""
        if not several:
            return _TRUE
        needs = Needs.of_all(condition.needs for condition in several)
        return cls(" && ".join(condition.text for condition in several), needs)

    def guarding(self, body: Code) -> Code:
        """Return ``body``, run if the condition holds; nothing for an empty body."""
        if not body.lines:
            return Code()
        needs = Needs.of_all((self.needs, body.needs))
        if self.text == "1":
            return Code(body.lines, needs)
        return Code((f"if ({self.text}) {{", *body.indented(), "}"), needs)


_TRUE: Final = Condition("1")
