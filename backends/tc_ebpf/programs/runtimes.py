"""Loaded runtimes: the functions that run no chain and their maps, for one program after the other.

The verifier takes 0.1 s for these functions, twenty times as long as for those that run the chains of a usual
ruleset. They are the same for most rulesets. A function refers to its maps, so programs that share functions
share these maps, too. Between two programs the maps are made like new ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack

from backends.tc_ebpf.programs.bpfmap import BpfMap
from backends.tc_ebpf.programs.compiled import CompiledProgram, Descriptors
from translate.dataclass import dataclass, field

__all__ = ["Runtime", "Runtimes"]


@dataclass(slots=True)
class Runtime:
    """The maps of runtimes that declare the same ones, and the functions that refer to them.

    ``used``: a program has them, or their maps could not be reset after it.
    """

    maps: dict[str, int] = field(default_factory=dict)
    functions: dict[bytes, int] = field(default_factory=dict)
    """Descriptors by the instructions."""
    used: bool = False

    def load(self, unit: CompiledProgram, sizes: Mapping[str, int]) -> Descriptors:
        """Load the unit of a program that runs no chain; a map or function that is there is not new."""
        self.used = True
        loaded = unit.load(sizes, self.maps, self.functions)
        for name, descriptor in loaded.maps.items():
            if name not in self.maps:
                self.maps[name] = os.dup(descriptor)
        for function in unit.functions:
            if function.instructions not in self.functions:
                self.functions[function.instructions] = os.dup(loaded.functions[function.name])
        return loaded

    def reset(self) -> None:
        """Make all maps like new ones, after the program has ended. Raises MachineError.

        The map ``programs`` is not among them: each program writes all of its entries.
        """
        for name, descriptor in self.maps.items():
            if name != "programs":
                BpfMap(name, descriptor).reset()
        self.used = False


class Runtimes:
    """The runtimes of this process. Programs at the same time have no maps in common."""

    def __init__(self) -> None:
        self._runtimes: dict[object, Runtime] = {}

    def load(
        self, rules: CompiledProgram, rest: CompiledProgram, sizes: Mapping[str, int]
    ) -> tuple[Runtime, Descriptors]:
        """Load a program of two units, of which the first runs the chains.

        Return its descriptors, and the runtime to reset when it has ended. Raises the errors of
        :meth:`CompiledProgram.load`, and ValueError for units that do not fit.
        """
        rules.places(rest)
        key = rest.maps, tuple(sizes[declared.name] for declared in rest.maps)
        runtime = self._runtimes.get(key)
        if runtime is None or runtime.used:
            runtime = self._runtimes[key] = Runtime()
        with ExitStack() as opened:
            shared = runtime.load(rest, sizes)
            for descriptor in shared.maps.values():
                opened.callback(os.close, descriptor)
            with ExitStack() as failed:
                for descriptor in shared.functions.values():
                    failed.callback(os.close, descriptor)
                own = rules.load(sizes, shared.maps)
                failed.pop_all()
        return runtime, Descriptors(own.maps, shared.functions | own.functions)
