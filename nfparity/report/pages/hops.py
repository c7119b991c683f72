"""Paths of packets as lists of hops: of traced packets through rules, and of observed outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from backends.model.outcome import Outcome
from backends.simulator import Ended, HookEntered, PolicyApplied, RulesSkipped, RuleVisited, TracedStep
from harness.explain.explain import endpoint_text
from harness.explain.ownvalue import CurrentPacket
from harness.report.path import decides, event_text, failure_text, match_text
from nfparity.kubeproxy import Line, Service
from nfparity.report.outcometext import outcome_text
from nfparity.report.pages.content import Hop
from translate.ir import Family, Hidden, Policy, Rule

__all__ = ["ServiceOf", "observed_hops", "service_names", "traced_hops"]

ServiceOf = Callable[[int], str]
"""A function from the line of a rule to its service, and its purpose there; empty if it has none."""


def service_names(lines: Mapping[int, tuple[Line, Service | None]], family: Family) -> ServiceOf:
    """Return the names of the services of kube-proxy's rules."""

    def name(line: int) -> str:
        if line not in lines:
            return ""
        rule, service = lines[line]
        return rule.part.value if service is None else f"{service.label(family)}: {rule.part.value}"

    return name


def traced_hops(
    step: TracedStep, family: Family, service_of: ServiceOf, *, misses: int = 0
) -> tuple[Hop, ...]:
    """Return the hops of one packet.

    Up to ``misses`` consecutive rules that do not match are shown with the reason; more are only counted.
    """
    return tuple(_traced(step, family, service_of, misses))


def _traced(step: TracedStep, family: Family, service_of: ServiceOf, misses: int) -> Iterator[Hop]:
    chain = ""
    missed: list[RuleVisited | RulesSkipped] = []
    current = CurrentPacket(family)
    for event in step.events:
        if isinstance(event, RuleVisited | RulesSkipped):
            where = f"{event.table} {event.chain}"
            if where != chain:
                yield from _missed(missed, current, family, service_of, misses)
                missed, chain = [], where
                yield Hop("chain", where)
            if isinstance(event, RulesSkipped) or not event.matched:
                missed.append(event)
                continue
        yield from _missed(missed, current, family, service_of, misses)
        missed = []
        current.follow(event)
        if isinstance(event, RuleVisited):
            yield _rule(event.rule, match_text(event.rule, family), service_of, decides=decides(event.rule))
            continue
        chain = chain if isinstance(event, PolicyApplied) else ""
        kind = "hook" if isinstance(event, HookEntered) else "end" if isinstance(event, Ended) else "step"
        denied = isinstance(event, PolicyApplied) and event.policy is Policy.DROP
        yield Hop(kind, event_text(event, family), decides=denied)
    yield from _missed(missed, current, family, service_of, misses)


def _missed(
    missed: list[RuleVisited | RulesSkipped],
    current: CurrentPacket,
    family: Family,
    service_of: ServiceOf,
    misses: int,
) -> Iterator[Hop]:
    visits = [event for event in missed if isinstance(event, RuleVisited)]
    if len(visits) == len(missed) <= misses:
        for visit in visits:
            assert visit.failed is not None
            reason = failure_text(visit.failed, family, current.value(visit))
            yield _rule(visit.rule, f"no: {reason}", service_of, kind="missed")
        return
    count = sum(event.last - event.first + 1 if isinstance(event, RulesSkipped) else 1 for event in missed)
    yield Hop("missed", f"{count} rule{'s do' if count != 1 else ' does'} not match")


def _rule(rule: Rule, note: str, service_of: ServiceOf, *, kind: str = "rule", decides: bool = False) -> Hop:
    line = rule.origin.line
    text = rule.origin.text.strip() or "a rule"
    if any(unknown.hides is Hidden.RULES for unknown in rule.unknown):
        line, text = 0, f"({'; '.join(unknown.reason for unknown in rule.unknown)})"
    return Hop(kind, text, note=note, line=line, service=service_of(line), decides=decides)


def observed_hops(
    outcome: Outcome, family: Family, *, entry: str, through: str, text: str
) -> tuple[Hop, ...]:
    """Return the hops that an outcome shows; ``through`` names the rules, ``text`` is its description."""
    hops = [Hop("hook", entry), Hop("step", through, note="observed on the kernel, not traced rule by rule")]
    if outcome.dnat:
        target = endpoint_text(family, outcome.dst, outcome.dport)
        hops.append(Hop("step", f"NAT: the destination becomes {target}", decides=True))
    if outcome.snat:
        source = endpoint_text(family, outcome.src, outcome.sport)
        hops.append(Hop("step", f"NAT: the source becomes {source}", decides=True))
    hops.append(Hop("end", f"end: {text or outcome_text(outcome, family)}"))
    return tuple(hops)
