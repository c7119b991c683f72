"""Python interface for tests of rules: packets in, outcomes out, on the simulator and on the kernel.

::

    from nfparity.api import compare, load, make_node

    node = make_node({"eth0": "192.0.2.1/24", "cni0": "10.0.0.1/24"})
    with load("chain.iptables-save", node, backend="iptables-nft") as rules:
        assert rules.send("tcp 192.0.2.9:40000 > 192.0.2.1:8080 in eth0").dst == "10.0.0.7:80"
    compare("chain.iptables-save", node, ["tcp 192.0.2.9:40000 > 192.0.2.1:8080 in eth0"])

A packet is written in one line, as in ``nfparity explain --packet`` (``docs/api.md`` has the options). Rules
are loaded into a network namespace that ends with the context, so nothing changes on the machine. The
backends of the kernel need root or a user namespace. ``nfparity.pytest_plugin`` has fixtures for pytest.
In this project, only the plugin and tests import it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Final, TypeVar

from backends.model.contract import Job, Session
from backends.model.flow import Again, Flow, IcmpError, Pause, Reply, Send, Step
from backends.model.node import Node, node_from_json
from backends.model.outcome import FlowResult, Outcome, Verdict
from harness.corpus.formats.rulefile import AS_FOUND, give_ipsets, read_some
from harness.diff.backends import BACKENDS, REFERENCE
from harness.diff.backends import backend as backend_called
from harness.explain.explain import endpoint_text
from harness.explain.packetspec import parse_packet
from harness.files.userfiles import read_bytes, read_text
from translate.dataclass import dataclass, field, replace
from translate.errors import InputError, MachineError, NfparityError, ParseError, UnsupportedError
from translate.ir import Family, Origin, Ruleset

__all__ = [
    "BACKENDS",
    "Again",
    "DifferenceError",
    "IcmpError",
    "InputError",
    "Loaded",
    "MachineError",
    "NfparityError",
    "Node",
    "Origin",
    "Outcome",
    "ParseError",
    "Pause",
    "Reply",
    "Result",
    "Ruleset",
    "UnsupportedError",
    "Verdict",
    "compare",
    "load",
    "make_node",
    "read_node",
    "read_rules",
]

T = TypeVar("T")

_KERNEL: Final = tuple(name for name in BACKENDS if name != REFERENCE)


class DifferenceError(AssertionError):
    """Backends disagree about a packet. The message is the report of ``nfparity diff``."""


def read_rules(source: str | PathLike[str]) -> Ruleset:
    """Return the rules of a file, or of a text of several lines, in any form that nfparity reads.

    Ipsets are read from the file ``ipset-save`` beside the rules, if there is one. Raises ParseError or
    InputError.
    """
    path = fspath(source)
    if "\n" in path:
        return read_some(path.encode(), name="rules", options=AS_FOUND)
    return give_ipsets(read_some(read_bytes(path), name=path, options=AS_FOUND), path)


def make_node(
    interfaces: Mapping[str, str | Sequence[str]],
    routes: Sequence[Mapping[str, str]] = (),
    sysctls: Mapping[str, str | int] | None = None,
) -> Node:
    """Return a node with these interfaces and their addresses, such as ``{"eth0": "192.0.2.1/24"}``.

    Routes have the keys ``dst``, ``dev`` and ``via`` (``docs/inputs.md``). Networks of the interfaces are
    routed without them. Raises ParseError.
    """
    data = {
        "interfaces": {
            name: [addresses] if isinstance(addresses, str) else list(addresses)
            for name, addresses in interfaces.items()
        },
        "routes": [dict(route) for route in routes],
        "sysctls": dict(sysctls or {}),
    }
    return node_from_json(json.dumps(data), name="node")


def read_node(path: str | PathLike[str]) -> Node:
    """Return the node of a JSON file. Raises ParseError or InputError."""
    return node_from_json(read_text(Path(path)), name=fspath(path))


@dataclass(frozen=True, slots=True)
class Result:
    """The outcomes of one packet on one backend, in a fixed order.

    There are several if rules choose at random, as kube-proxy's do. The other properties raise AssertionError
    if the outcomes differ in them.
    """

    packet: str
    backend: str
    family: Family
    outcomes: tuple[Outcome, ...]

    @property
    def verdict(self) -> Verdict:
        """The end of the packet's path; equal to a text such as ``"forward"`` or ``"drop"``."""
        return self._single("verdict", {outcome.verdict for outcome in self.outcomes})

    @property
    def out(self) -> str | None:
        """The interface on which the packet left; None if it did not leave."""
        return self._single("out", {outcome.out for outcome in self.outcomes})

    @property
    def src(self) -> str | None:
        """The final source as ``address:port``, or ``address`` without ports; None if it was dropped."""
        return self._single(
            "src", {_place(self.family, outcome.src, outcome.sport) for outcome in self.outcomes}
        )

    @property
    def dst(self) -> str | None:
        """The final destination in the same form."""
        return self._single("dst", self.destinations)

    @property
    def mark(self) -> int | None:
        """The final packet mark; None if the packet was dropped."""
        return self._single("mark", {outcome.mark for outcome in self.outcomes})

    @property
    def reject_with(self) -> str | None:
        """The error that a rejected packet's sender got, for example ``"icmp-port-unreachable"``."""
        return self._single("reject_with", {outcome.reject_with for outcome in self.outcomes})

    @property
    def destinations(self) -> frozenset[str | None]:
        """The final destinations of all outcomes."""
        return frozenset(_place(self.family, outcome.dst, outcome.dport) for outcome in self.outcomes)

    def _single(self, name: str, values: Iterable[T]) -> T:
        first, *others = dict.fromkeys(values)
        if others:
            shown = ", ".join(sorted(str(value) for value in (first, *others)))
            raise AssertionError(f"{self.backend}: {self.packet}: several values of {name}: {shown}")
        return first


def _place(family: Family, address: int | None, port: object) -> str | None:
    return None if address is None else endpoint_text(family, address, port)


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """Rules that are loaded on one backend. Packets of different calls do not influence each other."""

    backend: str
    _job: Job = field(repr=False)
    _session: Session = field(repr=False)
    _reference: Session = field(repr=False)
    _sent: list[Flow] = field(default_factory=list, repr=False)

    def send(self, packet: str) -> Result:
        """Send one packet and return its outcomes. Raises ParseError for a packet that cannot be read."""
        return self.exchange(packet)[0]

    def exchange(self, packet: str, *steps: Step) -> tuple[Result, ...]:
        """Send a packet and then the steps of its connection; return the outcomes of each packet.

        Steps are answers (:class:`Reply`), further packets (:class:`Again`), ICMP errors about the last
        packet (:class:`IcmpError`), and pauses (:class:`Pause`), which have no result. Where rules choose at
        random, the exchange is repeated until the chance of missing an outcome is at most 1e-9.
        """
        from harness.diff.sampling import Sampling

        flow = _flow(packet, self._job.node, steps)
        self._sent.append(flow)
        (result,) = self._reference.replay((flow,))
        if self._session is not self._reference:
            (result,) = self._session.replay((Sampling().with_first_runs(flow, result),))
        return _results(result, flow, packet, self.backend)

    def sent(self) -> tuple[str, ...]:
        """Return the packets of all calls so far, in order."""
        return tuple(flow.id for flow in self._sent)

    def deciding_rules(self) -> tuple[Origin | str, ...]:
        """Return the rules that decided the outcomes of the last call, according to the simulator.

        A rule is given by its file, line and text; other causes, such as the policy of a chain, are texts.
        """
        from backends.simulator import trace
        from harness.diff.deciding_rules import rules_of_branch

        if not self._sent:
            return ()
        flow = self._sent[-1]
        steps = [index for index, step in enumerate(flow.steps) if not isinstance(step, Pause)]
        return tuple(
            dict.fromkeys(
                rule if isinstance(rule, str) else rule.origin
                for branch in trace(self._job, flow, every_rule=False)
                for step in steps
                for rule in rules_of_branch(flow, branch, step)
            )
        )


def _flow(packet: str, node: Node, steps: Sequence[Step] = ()) -> Flow:
    first = parse_packet(packet, node)
    return replace(first, id=packet, steps=(*first.steps, *steps))


def _results(result: FlowResult, flow: Flow, packet: str, backend: str) -> tuple[Result, ...]:
    paths = sorted({branch.outcomes for branch in result.branches}, key=repr)
    packets = [packet]
    for step in flow.steps[1:]:
        match step:
            case Pause():
                continue
            case Send():
                raise InputError("the steps after the first packet are Reply, Again, IcmpError and Pause")
            case _:
                packets.append(f"{packet}, {type(step).__name__} {len(packets)}")
    return tuple(
        Result(text, backend, flow.family, tuple(dict.fromkeys(outcomes)))
        for text, outcomes in zip(packets, zip(*paths, strict=True), strict=True)
    )


@contextmanager
def load(
    rules: str | PathLike[str] | Ruleset, node: Node, *, backend: str = REFERENCE, level: int = 2
) -> Iterator[Loaded]:
    """Load rules on a backend of :data:`BACKENDS`; they are removed at the end of the context.

    ``level`` is the optimisation level of ``nftables`` and ``tc-ebpf``, which run nfparity's translation.
    Raises ParseError for rules that cannot be read, UnsupportedError if the backend cannot express them, and
    MachineError if it cannot run here.
    """
    ruleset = rules if isinstance(rules, Ruleset) else read_rules(rules)
    job = Job(rules=ruleset, node=node, level=level)
    chosen = backend_called(backend)
    availability = chosen.probe()
    if not availability.ok:
        raise MachineError(f"{backend} cannot run here: {availability.reason}")
    with backend_called(REFERENCE).open(job) as reference:
        if backend == REFERENCE:
            yield Loaded(backend, job, reference, reference)
            return
        with chosen.open(job) as session:
            yield Loaded(backend, job, session, reference)


def compare(
    rules: str | PathLike[str] | Ruleset,
    node: Node,
    packets: Iterable[str],
    *,
    backends: Sequence[str] = _KERNEL,
    level: int = 2,
) -> None:
    """Send packets through the rules on the simulator and on the kernel, and compare the outcomes.

    Raises DifferenceError if a backend differs from the simulator, UnsupportedError if it cannot express the
    rules, and MachineError if it cannot run here.
    """
    from harness.diff.batch import Batch
    from harness.diff.deciding_rules import deciding_rules
    from harness.diff.parity import Plan, run_parity
    from harness.report.text import print_parity

    ruleset = rules if isinstance(rules, Ruleset) else read_rules(rules)
    chosen = [backend_called(name) for name in backends if name != REFERENCE]
    if not chosen:
        raise InputError(f"no backend to compare with the {REFERENCE}")
    for backend in chosen:
        availability = backend.probe()
        if not availability.ok:
            raise MachineError(f"{backend.name} cannot run here: {availability.reason}")
    flows = tuple(_flow(packet, node) for packet in packets)
    path = "rules" if isinstance(rules, Ruleset) or "\n" in fspath(rules) else fspath(rules)
    batch = Batch(rules_path=path, rules=ruleset, node=node, flows=flows, corpus=None)
    report = run_parity(
        Plan(batches=(batch,), level=level),
        chosen,
        reference=backend_called(REFERENCE),
        rules=deciding_rules,
        requested=True,
        progress=lambda *_: None,
    )
    if report.differences:
        text = io.StringIO()
        print_parity(report, text)
        raise DifferenceError(text.getvalue())
