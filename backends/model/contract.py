"""The Backend protocol: the interface of the harness to everything that carries packets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from backends.model.flow import Flow, Repeated
from backends.model.node import Node
from backends.model.outcome import FlowResult
from translate.dataclass import dataclass
from translate.errors import Note
from translate.ir import Rules, Ruleset

__all__ = ["Availability", "Backend", "Job", "Session"]


@dataclass(frozen=True, slots=True)
class Availability:
    """The result of a backend's probe: ``reason`` names the missing parts and their packages."""

    ok: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The input of a backend: rules, node and optimisation level.

    Only a backend that runs a translation uses ``level`` (0 to 2) and ``rules`` directly; others use
    :attr:`ruleset`.
    """

    rules: Rules
    node: Node
    level: int = 2

    @property
    def ruleset(self) -> Ruleset:
        """The ruleset with every rule. Raises ParseError if a rule cannot be read."""
        return self.rules.whole()


class Session(Protocol):
    """A loaded backend. Flows are independent of each other (see :class:`Flow`)."""

    @property
    def limits(self) -> tuple[Note, ...]:
        """Notes about rules whose limits differ in this backend from those in iptables."""
        ...

    def replay(self, flows: Iterable[Flow | Repeated]) -> Iterator[FlowResult]:
        """Run the flows in order and yield the result of each as soon as it is known.

        The result of a repeated flow has every branch that its runs took. No state is kept between two runs
        of a flow or between two flows.
        """
        ...


class Backend(Protocol):
    """An implementation that loads a ruleset and sends packets through it."""

    @property
    def name(self) -> str:
        """The name on the command line, for example ``iptables-legacy``."""
        ...

    def probe(self) -> Availability:
        """Return whether this backend can run here. Cheap; changes nothing and never raises."""
        ...

    def open(self, job: Job) -> AbstractContextManager[Session]:
        """Load the rules into a fresh private node, which ends with the context.

        Raises UnsupportedError if a rule cannot be expressed, MachineError if the machine refuses. Nothing
        remains in either case, or after a signal.
        """
        ...
