"""Kernel modules that rules need: as text, grouped by presence, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.report.terminal import plain
from nfparity.requires import Modules, Need, Presence, Purpose

__all__ = ["requires_json", "requires_lines"]

_SHOWN: Final = 3


def requires_lines(needs: Sequence[Need], machine: Modules | None) -> Iterator[str]:
    """Yield a report: the modules for each purpose, and with a machine those that it lacks."""
    for purpose in Purpose:
        modules = sorted({need.module for need in needs if need.purpose is purpose})
        if modules:
            yield f"{purpose.value}: {', '.join(modules)}"
    if machine is None:
        return
    for presence, heading in (
        (Presence.ABSENT, f"missing on {machine.name}"),
        (Presence.OPTIONAL, f"on {machine.name} only with the package {machine.package}"),
        (Presence.UNKNOWN, f"not known of {machine.name}"),
    ):
        for purpose in Purpose:
            lacking = [n for n in needs if n.purpose is purpose and machine.presence(n.module) is presence]
            if lacking:
                yield ""
                yield f"{heading}, for {purpose.value}"
                for module in sorted({need.module for need in lacking}):
                    yield from _module(module, [need for need in lacking if need.module == module])
    yield ""
    if all(machine.presence(need.module) is Presence.PRESENT for need in needs):
        yield f"{machine.name} has all of them"
    for source in machine.sources:
        yield f"source: {source}"


def _module(module: str, needs: Sequence[Need]) -> Iterator[str]:
    """Yield a module, the features that need it, and the first of their rules."""
    features = ", ".join(need.feature for need in needs if need.feature)
    yield f"  {module}: {features}" if features else f"  {module}"
    origins = sorted({origin.line: origin for need in needs for origin in need.rules}.items())
    for line, origin in origins[:_SHOWN]:
        yield f"    line {line}: {plain(origin.text)}"
    more = len(origins) - _SHOWN
    if more > 0:
        yield f"    and {more} more rule{'s' if more > 1 else ''}"


def requires_json(needs: Sequence[Need], machine: Modules | None) -> dict[str, Any]:
    """Return the same as JSON data, with the lines of all rules."""
    return {
        "machine": None if machine is None else machine.name,
        "sources": [] if machine is None else list(machine.sources),
        "needs": [
            {
                "module": need.module,
                "purpose": need.purpose.name.lower(),
                "feature": need.feature,
                "lines": [origin.line for origin in need.rules],
                "presence": None if machine is None else machine.presence(need.module).value,
            }
            for need in needs
        ],
    }
