"""The hunt: plant one fault at a time, load what comes out into a real kernel, and look for a difference.

The flows are the regression corpus, and a few first packets with a random outcome many times over,
so that the shares of endpoints and the spread of drawn ports are tested as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from backends.contract import Backend, Job
from backends.flow import Flow
from backends.kernel.loader import Loader
from backends.kernel.session import open_session
from backends.outcome import FlowResult
from backends.packet import PortClass
from harness.batches import Batch
from harness.compare import compare
from harness.mutation.fault import Fault
from harness.repeat import repetitions
from harness.shares import unfair_shares
from harness.tallies import share_tallies
from translate.errors import InputError, MachineError

__all__ = ["Caught", "Ground", "Verdict", "first_difference", "hunt", "prepare"]

FALSE_ALARM_RATE = 1e-6
"""The chance that fair shares count as a catch, for each fault."""


class Verdict(StrEnum):
    """What became of a fault."""

    CAUGHT = "caught"
    """A packet showed it."""
    REFUSED = "refused"
    """The loader (nft, the compiler, the verifier) did not take it."""
    SURVIVED = "survived"
    """Nothing showed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caught:
    """A fault and what became of it; ``by`` says which flow showed it, or who refused it and how."""

    fault: Fault
    verdict: Verdict
    by: str


@dataclass(frozen=True, slots=True)
class Ground:
    """Flows on one node with what the reference expects; ``repeats`` maps a repetition to its flow.

    The flows of ``batch`` come first, then what is repeated of them.
    """

    batch: Batch
    flows: tuple[Flow, ...]
    expected: tuple[FlowResult, ...]
    repeats: dict[str, str]


def prepare(batches: Iterable[Batch], reference: Backend, *, few: int, many: int) -> tuple[Ground, ...]:
    """Ask the reference about every flow, and repeat the first packet of those that chance decides.

    Each is run ``few`` times more, so that every branch is seen; the first to each destination
    ``many`` times, so that its shares are.
    """
    grounds: list[Ground] = []
    seen: set[tuple[object, ...]] = set()
    for batch in batches:
        job = Job(ruleset=batch.ruleset, node=batch.node)
        with reference.open(job) as session:
            expected = list(session.replay(batch.flows))
            flows = list(batch.flows)
            repeats: dict[str, str] = {}
            for flow, result in zip(batch.flows, tuple(expected), strict=True):
                if not _by_chance(result):
                    continue
                packet = flow.first.packet
                service = (flow.first.entry is None, packet.dst, packet.proto, packet.dport)
                times = few if service in seen else many
                seen.add(service)
                first = replace(flow, id=f"{flow.id}:first", steps=flow.steps[:1])
                again = (first, *repetitions(first, times))
                repeats |= {one.id: first.id for one in again[1:]}
                flows += again
                expected += session.replay(again)
        grounds.append(Ground(batch, tuple(flows), tuple(expected), repeats))
    return tuple(grounds)


def _by_chance(result: FlowResult) -> bool:
    first = {branch.outcomes[0] for branch in result.branches}
    return len(first) > 1 or any(isinstance(outcome.sport, PortClass) for outcome in first)


def hunt(
    faults: Iterable[Fault],
    text: str,
    loader: Callable[[str], Loader],
    grounds: Sequence[Ground],
    *,
    proven: Collection[Fault] = (),
) -> Iterator[Caught]:
    """Plant each fault in ``text`` in turn and yield what became of it.

    A fault that is ``proven`` to change nothing meets every flow once: repetitions are for faults that
    only many packets show, and cost most of a survivor's time.
    """
    once = tuple(_without_repeats(ground) for ground in grounds)
    for fault in faults:
        planted = fault.plant(text)
        try:
            by = first_difference(loader(planted), once if fault in proven else grounds)
        except (InputError, MachineError) as e:
            yield Caught(fault=fault, verdict=Verdict.REFUSED, by=str(e).strip().split("\n")[0])
            continue
        verdict = Verdict.SURVIVED if by is None else Verdict.CAUGHT
        yield Caught(fault=fault, verdict=verdict, by=by or "")


def _without_repeats(ground: Ground) -> Ground:
    flows = ground.batch.flows
    return Ground(ground.batch, flows, ground.expected[: len(flows)], {})


def first_difference(loader: Loader, grounds: Sequence[Ground]) -> str | None:
    """Return what the first flow is that ends as the reference says that it cannot, or None."""
    for ground in grounds:
        seen: list[FlowResult] = []
        with open_session(ground.batch.node, loader) as session:
            wanted = zip(ground.flows, ground.expected, session.replay(ground.flows), strict=True)
            for flow, want, got in wanted:
                seen.append(got)
                for mismatch in compare(flow, want, got):
                    return f"{flow.id}: {mismatch.field} {mismatch.observed!r} for {mismatch.expected!r}"
        tallies = share_tallies(ground.flows, ground.expected, seen, ground.repeats)
        for unfair in unfair_shares(tallies, false_alarm_rate=FALSE_ALARM_RATE):
            return f"{unfair.flow_id}: share {unfair.count}/{unfair.runs} for {unfair.expected}"
    return None
