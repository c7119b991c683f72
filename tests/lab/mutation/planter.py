"""A translation in which faults are planted, and the change from one fault to the next while it is loaded."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import translate.bpf
import translate.nft
from backends.nftables.backend import NftablesLoader
from backends.nftables.emptying import only_empties_sets
from backends.replay.loader import Loader
from backends.tc_ebpf.loader import TcEbpfLoader
from tests.lab.mutation.bpf_faults import bpf_faults, output_of
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.nft_faults import nft_faults
from tests.lab.mutation.operators import Operators
from tests.lab.mutation.reduction import reduced
from tests.lab.mutation.toggles import can_switch, switched, turned
from translate.bpf import BpfOutput
from translate.ir import Program

__all__ = ["BpfPlanter", "BpfPlanting", "NftPlanter", "Planter"]

ALREADY_ASKED: Final = "earlier rules test or do the same, or leave no packet for the rule to match"
NOTHING_FOLLOWS: Final = "the packet is accepted unchanged, by this rule or at the end of a base chain"

TOGETHER: Final = 8
"""The number of faults in one tc program."""

_Planting = TypeVar("_Planting")
"""A loadable translation with a fault."""


class Planter(ABC, Generic[_Planting]):
    """A translation of a program, and its faults. The fault None means the unchanged translation."""

    text: str
    """The unchanged translation."""

    faults: Sequence[Fault]
    """Every fault, in the order of the text."""

    def choose(self, faults: Sequence[Fault]) -> None:
        """Keep only these faults, a subset of all."""
        self.faults = faults

    @abstractmethod
    def planted(self, fault: Fault | None, before: _Planting | None) -> _Planting:
        """Return the translation with this fault, as similar as possible to the loaded ``before``."""

    @abstractmethod
    def loader(self, planting: _Planting) -> Loader:
        """Return the loader."""

    @abstractmethod
    def change(self, before: _Planting, after: _Planting) -> Any | None:
        """Return the argument of :meth:`Loader.change` for the change; None if it needs another load."""

    def unchanged(self, fault: Fault) -> str | None:
        """Return the reason why the fault changes nothing, if the text alone proves this."""
        return None

    def divide(self, fault: Fault | None) -> bool:
        """From now on plant the fault with fewer others; return False if it is already alone."""
        return False


class NftPlanter(Planter[str]):
    """An nft text, which is replaced as a whole in one transaction."""

    def __init__(self, program: Program, more: Operators = ()) -> None:
        """Plan the usual faults, and those of ``more`` operators."""
        output = translate.nft.emit(program)
        self.text = output.text
        self._reduced = reduced(self.text)
        self.faults = tuple(nft_faults(self.text, more))
        self._family = program.family
        self._flush = output.flush

    def planted(self, fault: Fault | None, before: str | None) -> str:
        """Return the text."""
        return self.text if fault is None else fault.plant(self.text)

    def loader(self, planting: str) -> Loader:
        """Return the loader of the text, which empties limits by loading the text with its fault again."""
        flush = self._flush if only_empties_sets(self._flush) else planting
        return NftablesLoader(planting, self._family, flush=flush)

    def change(self, before: str, after: str) -> str | None:
        """Return the text, which replaces the loaded table.

        None if more than sets must be emptied, or if only one of the texts needs conntrack or whole packets:
        the kernel ends with them some time after the last rule that needs them (``nf_ct_netns_put``).
        """
        alike = _reassembles(before) == _reassembles(after)
        return after if alike and only_empties_sets(self._flush) else None

    def unchanged(self, fault: Fault) -> str | None:
        """Return the reason why the fault has no effect: both texts are equal when reduced."""
        text = fault.plant(self.text)
        if reduced(text) != self._reduced:
            return None
        same = reduced(text, ends=False) == reduced(self.text, ends=False)
        return ALREADY_ASKED if same else NOTHING_FOLLOWS


_QUOTED: Final = re.compile(r'"[^"]*"')
_REASSEMBLING: Final = re.compile(r"\b(?:ct|[sd]nat|masquerade|redirect|synproxy|tproxy|socket)\b")
"""Words of expressions for which the kernel puts fragments together."""


def _reassembles(text: str) -> bool:
    return _REASSEMBLING.search(_QUOTED.sub("", text)) is not None


@dataclass(frozen=True, slots=True)
class BpfPlanting:
    """A tc program with an active fault, and all faults that its switches can activate."""

    together: tuple[Fault, ...]
    output: BpfOutput


class BpfPlanter(Planter[BpfPlanting]):
    """Plants faults in a tc program by changes of its maps, one of which activates one of many faults."""

    def __init__(self, program: Program) -> None:
        self._output = translate.bpf.emit(program)
        self.text = self._output.render()
        self._groups: dict[Fault, tuple[Fault, ...]] = {}
        self.choose(tuple(bpf_faults(self.text)))

    def choose(self, faults: Sequence[Fault]) -> None:
        """Keep only these faults."""
        self.faults = faults
        switches = [fault for fault in faults if can_switch(fault)]
        self._groups.clear()
        for start in range(0, len(switches), TOGETHER):
            self._group(tuple(switches[start : start + TOGETHER]))

    def _group(self, faults: tuple[Fault, ...]) -> None:
        self._groups |= dict.fromkeys(faults, faults)

    def planted(self, fault: Fault | None, before: BpfPlanting | None) -> BpfPlanting:
        """Return the program with this fault and others, each behind a switch."""
        if fault in self._groups:
            together = self._groups[fault]
            return self._planting(self.text, together, together.index(fault) + 1)
        if fault is None or fault.place.text.startswith(" *   "):
            text = self.text if fault is None else fault.plant(self.text)
            return self._planting(text, () if before is None else before.together, None)
        return self._planting(fault.plant(self.text), (), None)

    def _planting(self, text: str, together: tuple[Fault, ...], number: int | None) -> BpfPlanting:
        if not together:
            return BpfPlanting((), output_of(text, self._output))
        return BpfPlanting(together, turned(output_of(switched(text, together), self._output), number))

    def loader(self, planting: BpfPlanting) -> Loader:
        """Return the loader, which compiles and loads the program."""
        return TcEbpfLoader(planting.output, cached=False)  # it will not be compiled again

    def change(self, before: BpfPlanting, after: BpfPlanting) -> tuple[translate.bpf.MapChange, ...] | None:
        """Return the entries that differ; None for another program."""
        if before.together != after.together:
            return None
        change = translate.bpf.change_between(before.output, after.output)
        return None if change.replacement else change.live()

    def unchanged(self, fault: Fault) -> str | None:
        """Return the reason why the fault changes nothing, if the text alone proves this."""
        return None

    def divide(self, fault: Fault | None) -> bool:
        """Halve the number of faults that share a program with this fault, until it is alone."""
        together = () if fault is None else self._groups.get(fault, ())
        if len(together) > 1:
            middle = len(together) // 2
            self._group(together[:middle])
            self._group(together[middle:])
        elif fault is not None and together:
            del self._groups[fault]
        return bool(together)
