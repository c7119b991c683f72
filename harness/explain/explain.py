"""Explanation of one packet: its traced paths, and the effects of the rules on them.

The path comes from the simulator's trace. Sentences about consequences are computed: a rule that sets a mark
is removed from the ruleset and the same packet is simulated again, so "without line 12" describes what would
really happen. Names of chains and comments are not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from backends.model.contract import Job
from backends.model.flow import Flow, Reply
from backends.model.outcome import Assumption, Outcome, Verdict
from backends.model.packet import PortClass
from backends.simulator import RuleVisited, TracedBranch, TracedStep, trace
from harness.corpus.formats.entry import entry_of
from harness.corpus.formats.ruletext import action_text, test_text
from translate.dataclass import dataclass, replace
from translate.ir import (
    Dnat,
    Family,
    Field,
    FieldTest,
    Goto,
    Jump,
    Masquerade,
    Rule,
    Ruleset,
    SetMark,
    Snat,
    TableName,
    format_address,
)

__all__ = ["ExplainedBranch", "Explanation", "endpoint_text", "explain", "merge_replies"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedBranch:
    """One path of the packet, and sentences about its consequences.

    ``assuming`` as in :class:`~backends.model.outcome.OutcomeBranch`.
    """

    probability: Fraction
    steps: tuple[TracedStep, ...]
    consequences: tuple[str, ...]
    assuming: tuple[Assumption, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All possible paths of a packet. Each branch consists of the packet's step and its reply's step."""

    job: Job
    flow: Flow
    branches: tuple[ExplainedBranch, ...]


def explain(job: Job, flow: Flow) -> Explanation:
    """Trace the flow's first packet and the reply to it, on every branch.

    Raises UnsupportedError when the simulator cannot express a rule.
    """
    flow = replace(flow, steps=(flow.first, Reply()))
    branches = trace(job, flow, assuming=True)
    return Explanation(
        job=job,
        flow=flow,
        branches=tuple(
            ExplainedBranch(
                probability=b.probability,
                steps=b.steps,
                consequences=tuple(_consequences(job, flow, b)),
                assuming=b.assuming,
            )
            for b in branches
        ),
    )


def merge_replies(branches: tuple[ExplainedBranch, ...]) -> tuple[ExplainedBranch, ...]:
    """Merge branches that differ only in the outcome of the reply.

    The probabilities of random choices are added. Only assumptions that all merged branches share are kept.
    """
    groups: dict[tuple[object, ...], list[ExplainedBranch]] = {}
    for branch in branches:
        groups.setdefault((branch.steps[0], branch.consequences), []).append(branch)
    merged = []
    for group in groups.values():
        first = group[0]
        agreed = tuple(
            assumption
            for assumption in first.assuming
            if all(assumption in other.assuming for other in group)
        )
        by_assumptions: dict[tuple[Assumption, ...], Fraction] = {}
        for branch in group:
            by_assumptions[branch.assuming] = (
                by_assumptions.get(branch.assuming, Fraction()) + branch.probability
            )
        merged.append(replace(first, assuming=agreed, probability=max(by_assumptions.values())))
    return tuple(merged)


def endpoint_text(family: Family, address: int | None, port: object) -> str:
    """Return ``address:port``, or the address alone."""
    if address is None:
        return "(nothing)"
    text = format_address(family, address)
    if port is None:
        return text
    shown = f"a port of {port}" if isinstance(port, PortClass) else str(port)
    return f"[{text}]:{shown}" if family is Family.IP6 else f"{text}:{shown}"


def _visits(step: TracedStep) -> list[RuleVisited]:
    return [e for e in step.events if isinstance(e, RuleVisited) and not e.answer]


def _line(rule: Rule) -> str:
    return f"line {rule.origin.line}" if rule.origin.line else "a rule"


def _marks_below(ruleset: Ruleset, table: TableName, rule: Rule) -> tuple[Rule, SetMark] | None:
    """Return the rule that sets a mark when ``rule`` matches: itself, or the first rule of its target."""
    if not rule.actions:
        return None
    action = rule.actions[0]
    if isinstance(action, SetMark):
        return rule, action
    where = ruleset.table(table)
    if not isinstance(action, Jump | Goto) or where is None:
        return None
    chain = where.chain(action.chain)
    for other_rule in () if chain is None else chain.rules:
        if other_rule.actions and isinstance(other_rule.actions[0], SetMark) and not other_rule.tests:
            return other_rule, other_rule.actions[0]
        break
    return None


def _consequences(job: Job, flow: Flow, branch: TracedBranch) -> Iterator[str]:
    first = branch.steps[0]
    outcome = first.outcome
    if outcome is None:
        return
    visits = _visits(first)
    family = job.ruleset.family
    yield from _sent_elsewhere(visits, family)
    for visit in visits:
        marking = _marks_below(job.ruleset, visit.table, visit.rule)
        if marking is None or (visit.matched and not visit.rule.tests):
            continue  # a rule without a condition is reported with the rule that jumped to it
        marker, mark = marking
        if visit.matched:
            yield from _marked(job, flow, branch, visit, marker, mark)
        else:
            yield from _not_marked(visits, visit, marker, mark, flow, family)
    yield from _source(visits, outcome, flow, branch, job)


def _sent_elsewhere(visits: list[RuleVisited], family: Family) -> Iterator[str]:
    for visit in visits:
        if visit.matched and visit.rule.actions and isinstance(visit.rule.actions[0], Dnat):
            yield f"{_line(visit.rule)} {action_text(visit.rule.actions[0], family)}"


def _saddr(rule: Rule) -> FieldTest | None:
    for test in rule.tests:
        if isinstance(test, FieldTest) and test.field is Field.SADDR and test.mask is None:
            return test
    return None


def _because(visit: RuleVisited, flow: Flow, family: Family) -> str:
    tests = " and ".join(test_text(t, family) for t in visit.rule.tests)
    source = _saddr(visit.rule)
    if source is None:
        return f"because {tests}"
    return f"because the source {format_address(family, flow.first.packet.src)} matches ({tests})"


def _marked(
    job: Job, flow: Flow, branch: TracedBranch, visit: RuleVisited, marker: Rule, mark: SetMark
) -> Iterator[str]:
    family = job.ruleset.family
    outcome = branch.steps[0].outcome
    assert outcome is not None
    visits = _visits(branch.steps[0])
    through = "" if marker is visit.rule else f" leads to {_line(marker)}, which"
    head = f"{_line(visit.rule)}{through} {action_text(mark, family)} {_because(visit, flow, family)}"
    for later in _tested(visits[visits.index(visit) + 1 :], marker, mark):
        verb = "matches" if later.matched else "does not match"
        head += f"; {_line(later.rule)} ({_target(later.rule, family)}) {verb} because of it"
    natted = _source_rule(visits)
    if natted is not None and outcome.snat:
        head += f", and {_line(natted)} {action_text(natted.actions[0], family)}"
    yield head
    other = _without(job, flow, visit.rule, branch)
    if other is None:
        return
    if other == outcome:
        yield f"without {_line(visit.rule)} the outcome of the packet would be the same"
        return
    yield from _difference(job, flow, visit.rule, outcome, other)


def _tested(later: list[RuleVisited], marker: Rule, mark: SetMark) -> Iterator[RuleVisited]:
    """Yield the rules that test the mark, until another rule changes it."""
    for visit in later:
        action = visit.rule.actions[0] if visit.matched and visit.rule.actions else None
        if isinstance(action, SetMark) and visit.rule is not marker:
            return
        tests = [t for t in visit.rule.tests if _tests_mark(t, mark)]
        if tests and (visit.matched or visit.failed in tests):
            yield visit


def _difference(job: Job, flow: Flow, rule: Rule, outcome: Outcome, other: Outcome) -> Iterator[str]:
    family = job.ruleset.family
    if other.verdict not in (Verdict.FORWARD, Verdict.LOCAL):
        yield f"without {_line(rule)} the packet would have another fate: {other.verdict}"
        return
    source = endpoint_text(family, other.src, other.sport)
    target = endpoint_text(family, other.dst, other.dport)
    head = f"without {_line(rule)} it would arrive as {source} > {target}"
    if other.src == outcome.src or not other.dnat:
        yield head
        return
    destination = endpoint_text(family, flow.first.packet.dst, flow.first.packet.dport)
    assert other.src is not None
    if other.src == other.dst:
        yield (
            f"{head}: the endpoint would see its own address as the sender, answer itself without passing"
            f" this node, and not accept that answer ({target} > {source}), because it sent to {destination}"
        )
        return
    try:
        back = entry_of(job.node, family, other.src)
    except ValueError:
        back = None
    if outcome.out is not None and back == outcome.out:
        yield (
            f"{head}: sender and endpoint are both behind {back}, so the answer need not pass this node"
            f" again, and would reach the sender from {target}, although it sent to {destination}"
        )
    else:
        yield f"{head}, and the endpoint would answer {format_address(family, other.src)} by its own routes"


def _not_marked(
    visits: list[RuleVisited],
    visit: RuleVisited,
    marker: Rule,
    mark: SetMark,
    flow: Flow,
    family: Family,
) -> Iterator[str]:
    source = _saddr(visit.rule)
    if source is None or visit.failed is not source:
        return
    own = format_address(family, flow.first.packet.src)
    text = (
        f"{_line(visit.rule)} does not apply: it {action_text(mark, family)} only where"
        f" {test_text(source, family)}, and this packet comes from {own}"
    )
    chosen = [
        v.rule.actions[0]
        for v in visits[visits.index(visit) + 1 :]
        if v.chain == visit.chain and v.matched and v.rule.actions and isinstance(v.rule.actions[0], Dnat)
    ]
    values = source.values
    if chosen and isinstance(chosen[0], Dnat) and not source.negated and values == (chosen[0].addresses,):
        target = test_text(source, family).rpartition(" ")[2]
        text += (
            f"; this chain sends packets to {target}, so the mark is for packets that an endpoint sends"
            " to itself through the service (hairpin)"
        )
    yield text


def _tests_mark(test: object, mark: SetMark) -> bool:
    if not isinstance(test, FieldTest) or test.field is not Field.MARK:
        return False
    return bool((0xFFFFFFFF if test.mask is None else test.mask) & (mark.mask | mark.value))


def _target(rule: Rule, family: Family) -> str:
    tests = " and ".join(test_text(t, family) for t in rule.tests)
    action = action_text(rule.actions[0], family) if rule.actions else "only counts"
    return f"{action} where {tests}"


def _source_rule(visits: list[RuleVisited]) -> Rule | None:
    for visit in visits:
        if visit.matched and visit.rule.actions and isinstance(visit.rule.actions[0], Masquerade | Snat):
            return visit.rule
    return None


def _source(
    visits: list[RuleVisited], outcome: Outcome, flow: Flow, branch: TracedBranch, job: Job
) -> Iterator[str]:
    """Yield sentences about the effect of source NAT on the traced reply."""
    if outcome.verdict not in (Verdict.FORWARD, Verdict.LOCAL) or not (outcome.dnat or outcome.snat):
        return
    family = job.ruleset.family
    packet = flow.first.packet
    natted = _source_rule(visits)
    if natted is not None and outcome.snat:
        yield (
            f"{_line(natted)} changes the source from {endpoint_text(family, packet.src, packet.sport)} to"
            f" {endpoint_text(family, outcome.src, outcome.sport)}, so the answer comes back to this node"
        )
    elif outcome.src is not None:
        yield f"the source stays {endpoint_text(family, outcome.src, outcome.sport)}"
    answer = branch.steps[1].outcome
    if answer is not None and answer.verdict in (Verdict.FORWARD, Verdict.LOCAL):
        arrives = f"leaves on {answer.out}" if answer.out is not None else "arrives at this node itself"
        yield (
            f"the answer, when it passes this node, {arrives} as"
            f" {endpoint_text(family, answer.src, answer.sport)} >"
            f" {endpoint_text(family, answer.dst, answer.dport)}"
        )


def _without(job: Job, flow: Flow, rule: Rule, branch: TracedBranch) -> Outcome | None:
    """Return the outcome without the rule, on the branch with the same choices and assumptions."""
    outcome = branch.steps[0].outcome
    assert outcome is not None
    denied = {replace(assumption, matches=not assumption.matches) for assumption in branch.assuming}
    ruleset = _disarmed(job.ruleset, rule)
    others = [
        b.steps[0].outcome
        for b in trace(replace(job, rules=ruleset), replace(flow, steps=flow.steps[:1]), assuming=True)
        if denied.isdisjoint(b.assuming)
    ]
    same = [o for o in others if o is not None and (o.dst, o.dport) == (outcome.dst, outcome.dport)]
    return next(iter(same or others), None)


def _disarmed(ruleset: Ruleset, rule: Rule) -> Ruleset:
    tables = []
    for table in ruleset.tables:
        chains = []
        for chain in table.chains:
            if any(r is rule for r in chain.rules):
                rules = tuple(replace(r, actions=()) if r is rule else r for r in chain.rules)
                chain = replace(chain, rules=rules)
            chains.append(chain)
        tables.append(replace(table, chains=tuple(chains)))
    return replace(ruleset, tables=tuple(tables))
