"""The Backend protocol: what the harness may ask of anything that carries packets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from backends.model.flow import Flow, Repeated
from backends.model.node import Node
from backends.model.outcome import FlowResult
from translate.errors import Note
from translate.ir import Ruleset

__all__ = ["Availability", "Backend", "Job", "Session"]


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a backend can run here; ``reason`` says what is missing, and what to install."""

    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to run packets through: the rules as read, the node, and the optimisation level.

    ``level`` (0 to 2) matters only to backends that run a translation.
    """

    ruleset: Ruleset
    node: Node
    level: int = 2


class Session(Protocol):
    """A loaded backend. Flows are independent of each other (see :class:`Flow`)."""

    @property
    def limits(self) -> tuple[Note, ...]:
        """Rules that this backend is known to carry with another limit than they have in iptables."""
        ...

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        """Run the flows in order and yield one result each, as they come: every way that a repeated one went.

        Nothing of one run is left when the next begins, as between flows.
        """
        ...


class Backend(Protocol):
    """Something that carries packets as a ruleset says."""

    @property
    def name(self) -> str:
        """The name on the command line, for example ``iptables-legacy``."""
        ...

    def probe(self) -> Availability:
        """Say whether this backend can run here; cheap, changes nothing, never raises."""
        ...

    def open(self, job: Job) -> AbstractContextManager[Session]:
        """Load the rules into a fresh private node; everything is gone when the context ends.

        Raises UnsupportedError when a rule cannot be expressed, MachineError when the machine
        refuses. Nothing stays behind in either case, nor after a signal.
        """
        ...
