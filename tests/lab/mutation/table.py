"""The table of planted faults, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from tests.lab.mutation.hunt import Verdict
from tests.lab.mutation.trial import Judged, Trial

__all__ = ["print_table"]


def print_table(trials: Sequence[Trial], stream: TextIO) -> None:
    """Print the results of the faults by subject and kind, then the proofs, then the problems."""
    counted = "".join(f"{word:>10}" for word in ("planted", "caught", "refused", "no change"))
    print(f"{'rules':12}{'subject':10}{'kind of fault':18}{counted}", file=stream)
    for trial in trials:
        for operator in dict.fromkeys(judged.caught.fault.operator for judged in trial.judged):
            _row(
                trial,
                operator,
                [o for o in trial.judged if o.caught.fault.operator == operator],
                stream,
            )
        _row(trial, "all", trial.judged, stream)
        print(f"{'':22}mutation score: {_score(trial)}\n", file=stream)
    _print_proofs(trials, stream)
    for trial in trials:
        for judged in trial.judged:
            if judged.hole:
                print(f"NOT CAUGHT  {trial.ruleset} {trial.subject}  {judged.caught.fault.key}", file=stream)
            if judged.disproved and judged.proof is not None:
                print(f"WRONG PROOF {trial.ruleset} {trial.subject}  {judged.caught.fault.key}", file=stream)
                print(f"            {judged.proof.reason}; but {judged.caught.by}", file=stream)


def _row(trial: Trial, operator: str, judged: Sequence[Judged], stream: TextIO) -> None:
    counts = Counter(fault.caught.verdict for fault in judged)
    holes = sum(fault.hole for fault in judged)
    proven = counts[Verdict.SURVIVED] - holes
    line = f"{trial.ruleset:12}{trial.subject:10}{operator:18}{len(judged):10}{counts[Verdict.CAUGHT]:10}"
    line += f"{counts[Verdict.REFUSED]:10}{proven:10}"
    print(line + (f"   {holes} NOT CAUGHT" if holes else ""), file=stream)


def _score(trial: Trial) -> str:
    caught = trial.count(Verdict.CAUGHT)
    visible = caught + sum(judged.hole for judged in trial.judged)
    return f"{caught} of {visible} faults that change an outcome ({caught / max(visible, 1):.1%})"


def _print_proofs(trials: Sequence[Trial], stream: TextIO) -> None:
    reasons = Counter(
        judged.proof.reason
        for trial in trials
        for judged in trial.judged
        if judged.proof is not None and judged.caught.verdict is Verdict.SURVIVED
    )
    if reasons:
        print("faults that change nothing, and why:", file=stream)
    for reason, count in reasons.most_common():
        print(f"{count:5}  {reason}", file=stream)
