"""Batches: flows with their rules and node."""

from __future__ import annotations

from collections.abc import Iterable

from backends.model.flow import Flow
from backends.model.node import Node
from translate.dataclass import dataclass, replace
from translate.errors import InputError
from translate.ir import Rules, Ruleset

__all__ = ["Batch", "select"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Flows to run through one ruleset on one node. ``rules_path`` and ``corpus`` are as given.

    ``corpus`` is None if all flows are random. ``alike`` are the ids of flows that other flows of a generated
    corpus resemble, with other constants: flows there share runs (:mod:`harness.diff.entrances`). If it is
    None, every flow gets all its runs.
    """

    rules_path: str
    rules: Rules
    node: Node
    flows: tuple[Flow, ...]
    corpus: str | None
    node_path: str | None = None
    alike: frozenset[str] | None = None

    @property
    def ruleset(self) -> Ruleset:
        """The complete ruleset. Raises ParseError if a rule cannot be read."""
        return self.rules.whole()


def select(batches: Iterable[Batch], only: Iterable[str]) -> tuple[Batch, ...]:
    """Return the batches with only the flows named in ``only`` (``case/flow`` or ``flow``).

    An empty ``only`` keeps all flows. Raises InputError for an unknown name.
    """
    wanted = list(only)
    if not wanted:
        return tuple(batches)
    known: set[str] = set()
    kept = []
    for batch in batches:
        flows = []
        for flow in batch.flows:
            names = [w for w in wanted if flow.id == w or flow.id.rpartition("/")[2] == w]
            known.update(names)
            if names:
                flows.append(flow)
        if flows:
            kept.append(replace(batch, flows=tuple(flows)))
    missing = [w for w in wanted if w not in known]
    if missing:
        raise InputError(f"no flow is called {', '.join(repr(m) for m in missing)}")
    return tuple(kept)
