"""An explanation as JSON: every branch, with its events as objects."""

from __future__ import annotations

import json

from backends.model.outcome import Assumption
from backends.simulator import RuleVisited, TracedStep
from harness.corpus.formats.jsonlines import flow_to_json
from harness.corpus.formats.outcomes import assumption_to_json, outcome_to_json, probability_text
from harness.corpus.formats.ruletext import test_text
from harness.explain.explain import ExplainedBranch, Explanation
from harness.report.path import path_lines
from translate.ir import Family

__all__ = ["explanation_json"]


def explanation_json(explanation: Explanation) -> str:
    """Return the explanation as one JSON object; ``path`` is the list of lines of the text report."""
    family = explanation.job.ruleset.family
    data = {
        "rules": explanation.job.ruleset.source,
        "packet": flow_to_json(explanation.flow),
        "branches": [_branch(b, family) for b in explanation.branches],
    }
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _branch(branch: ExplainedBranch, family: Family) -> dict[str, object]:
    return {
        "probability": probability_text(branch.probability),
        "assuming": [assumption_to_json(a) for a in branch.assuming],
        "packet": _step(branch.steps[0], family),
        "reply": _step(branch.steps[1], family),
        "consequences": list(dict.fromkeys(branch.consequences)),
    }


def _step(step: TracedStep, family: Family) -> dict[str, object]:
    return {
        "outcome": None if step.outcome is None else outcome_to_json(step.outcome, family),
        "rules": [_rule(e, family) for e in step.events if isinstance(e, RuleVisited)],
        "path": path_lines(step, family, every_rule=True),
    }


def _failed(visit: RuleVisited, family: Family) -> str | None:
    if visit.failed is None:
        return None
    return str(visit.failed) if isinstance(visit.failed, Assumption) else test_text(visit.failed, family)


def _rule(visit: RuleVisited, family: Family) -> dict[str, object]:
    return {
        "file": visit.rule.origin.file,
        "line": visit.rule.origin.line,
        "table": visit.table.value,
        "hook": visit.hook.value,
        "chain": visit.chain,
        "number": visit.index,
        "rule": visit.rule.origin.text,
        "matched": visit.matched,
        "failed": _failed(visit, family),
        "mark": visit.mark,
    }
