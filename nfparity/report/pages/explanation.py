"""The page of ``nfparity explain``: the path of one packet, and of its reply, with the rules that decide."""

from __future__ import annotations

from typing import Final

from backends.model.outcome import Verdict
from backends.simulator import TracedStep
from harness.explain.explain import ExplainedBranch, Explanation, merge_replies
from harness.report.explanation import chance_text
from nfparity.assess.node.index import ServiceIndex
from nfparity.kubeproxy import recover
from nfparity.report.outcometext import outcome_text
from nfparity.report.pages.content import Path
from nfparity.report.pages.drawing import PathDrawer
from nfparity.report.pages.hops import ServiceOf, service_names, traced_hops
from nfparity.report.pages.page import render
from translate.dataclass import dataclass
from translate.ir import Family

__all__ = ["explanation_page"]

_MISSES: Final = 3
"""The maximum number of consecutive rules without a match that are shown."""
_OUTCOMES: Final = 3
"""The maximum number of outcomes in the verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Branch:
    """One branch of the packet: its title and assumptions, its paths, and a sentence about a missing path."""

    title: str
    outcome: str
    assumptions: tuple[str, ...]
    paths: tuple[Path, ...]
    missing: str
    reasons: tuple[str, ...]


def explanation_page(
    explanation: Explanation, *, with_reply: bool, every_rule: bool, command: str, version: str
) -> str:
    """Return the explanation as a page; ``command`` makes it again, ``version`` is this program's."""
    ruleset = explanation.job.ruleset
    service_of = service_names(ServiceIndex.of(recover(ruleset)).lines, ruleset.family)
    misses = 1 << 30 if every_rule else _MISSES
    branches = explanation.branches if with_reply else merge_replies(explanation.branches)
    drawer = PathDrawer(ruleset, service_of)
    shown = tuple(
        _branch(branch, ruleset.family, service_of, drawer, misses, with_reply=with_reply)
        for branch in branches
    )
    first = explanation.flow.first
    where = f"enters at {first.entry}" if first.entry is not None else "made on the node"
    values = {
        "title": f"Packet {first.packet}, {where}",
        "verdict": _verdict(shown),
        "facts": (
            ("Rules", ruleset.source),
            ("Packet", f"{first.packet}, {where}"),
            ("Reproduce", command),
        ),
        "branches": shown,
        "version": version,
    }
    return render("explanation.html", values)


def _verdict(branches: tuple[_Branch, ...]) -> str:
    outcomes = tuple(dict.fromkeys(branch.outcome for branch in branches))
    if len(outcomes) <= _OUTCOMES:
        return f"The packet {', or '.join(outcomes)}."
    return f"The packet has {len(outcomes)} possible outcomes."


def _branch(
    branch: ExplainedBranch,
    family: Family,
    service_of: ServiceOf,
    drawer: PathDrawer,
    misses: int,
    *,
    with_reply: bool,
) -> _Branch:
    packet, reply = branch.steps
    hops = traced_hops(packet, family, service_of, misses=misses)
    paths = [Path("The packet", hops, drawer.draw(packet))]
    missing = ""
    if with_reply and reply.emission is not None:
        hops = traced_hops(reply, family, service_of, misses=misses)
        paths.append(Path("The reply", hops, drawer.draw(reply)))
    elif with_reply:
        unknown = reply.outcome is not None and reply.outcome.verdict is Verdict.UNKNOWN
        missing = (
            "The reply is unknown, because the outcome of the packet is unknown."
            if unknown
            else "There is no reply, because the packet reached no receiver."
        )
    return _Branch(
        title=chance_text(branch.probability),
        outcome=_outcome(packet, family),
        assumptions=tuple(map(str, branch.assuming)),
        paths=tuple(paths),
        missing=missing,
        reasons=tuple(dict.fromkeys(branch.consequences)),
    )


def _outcome(step: TracedStep, family: Family) -> str:
    if step.outcome is None:
        return "has no outcome"
    text = outcome_text(step.outcome, family)
    if step.outcome.verdict is Verdict.LOCAL:
        return f"goes {text}"
    return text if step.outcome.verdict is Verdict.FORWARD else f"is {text}"
