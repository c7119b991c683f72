"""The rules that decided the expected outcome of a packet, from the reference's trace."""

from __future__ import annotations

from typing import Final

from backends.model.contract import Job
from backends.model.flow import Flow, Send
from backends.simulator import PolicyApplied, RuleVisited, Simulation, TracedBranch
from harness.corpus.formats.ruletext import place
from harness.diff.mismatch import Mismatch
from translate.ir import Goto, Jump, Policy, Return, Rule, TableName

__all__ = ["deciding_rules", "find_branch", "rules_of_branch"]


def deciding_rules(job: Job, flow: Flow, mismatch: Mismatch) -> tuple[Rule | str, ...]:
    """Return the rules that decided the expected outcome of a step; other causes are given as text.

    These are the matching rules whose action is not just a jump. For a later packet of a connection they
    include the NAT rules that its first packet matched, because they determine the NAT of the connection.
    """
    if mismatch.branch is None or mismatch.step is None:
        return ()
    return rules_of_branch(flow, find_branch(Simulation(job), flow, mismatch.branch), mismatch.step)


def rules_of_branch(flow: Flow, branch: TracedBranch, step: int) -> tuple[Rule | str, ...]:
    """Return the rules that decide a step of a traced branch, as :func:`deciding_rules` does."""
    first, sent = next((i, s) for i in range(step, -1, -1) if isinstance(s := flow.steps[i], Send))
    deciding: dict[str, Rule | str] = {}
    for index in (first, step):
        for event in branch.steps[index].events:
            if isinstance(event, RuleVisited) and event.dropped:
                deciding[place(event.rule)] = event.rule
                if sent.packet.truncated:
                    deciding[_TRUNCATED] = _TRUNCATED
            elif isinstance(event, RuleVisited):
                effect = event.matched and event.rule.actions
                earlier = index != step and event.table is not TableName.NAT
                if effect and not earlier and not isinstance(event.rule.actions[0], Jump | Goto | Return):
                    deciding[place(event.rule)] = event.rule
            elif isinstance(event, PolicyApplied) and event.policy is Policy.DROP:
                policy = f"policy DROP of {event.hook} in table {event.table}"
                deciding[policy] = policy
    return tuple(deciding.values()) or ("no rule: every chain that it passed accepted it",)


_TRUNCATED: Final = "the packet ends within its transport header: iptables drops it here, nftables does not"
"""The reason for a difference that no translation avoids (docs/limits.md)."""


def find_branch(simulation: Simulation, flow: Flow, index: int) -> TracedBranch:
    """Return the traced branch with the outcomes of branch ``index`` of the reference's result."""
    wanted = simulation.simulate(flow).branches[index].outcomes
    for branch in simulation.trace(flow, every_rule=False):
        if tuple(s.outcome for s in branch.steps if s.outcome is not None) == wanted:
            return branch
    raise AssertionError(f"{flow.id}: the trace has no branch {index}")
