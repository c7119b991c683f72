"""The table of planted faults, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from tests.lab.mutation.hunt import Verdict
from tests.lab.mutation.trial import Judged, Trial

__all__ = ["print_table"]


def print_table(trials: Sequence[Trial], stream: TextIO) -> None:
    """Print what became of the faults, by subject and kind, then the proofs, then what is wrong."""
    counted = "".join(f"{word:>10}" for word in ("planted", "caught", "refused", "no change"))
    print(f"{'rules':12}{'subject':10}{'kind of fault':18}{counted}", file=stream)
    for trial in trials:
        for operator in dict.fromkeys(one.caught.fault.operator for one in trial.judged):
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
        for one in trial.judged:
            if one.hole:
                print(f"NOT CAUGHT  {trial.arena} {trial.subject}  {one.caught.fault.key}", file=stream)
            if one.disproved and one.proof is not None:
                print(f"WRONG PROOF {trial.arena} {trial.subject}  {one.caught.fault.key}", file=stream)
                print(f"            {one.proof.reason}; but {one.caught.by}", file=stream)


def _row(trial: Trial, operator: str, judged: Sequence[Judged], stream: TextIO) -> None:
    counts = Counter(one.caught.verdict for one in judged)
    holes = sum(one.hole for one in judged)
    proven = counts[Verdict.SURVIVED] - holes
    line = f"{trial.arena:12}{trial.subject:10}{operator:18}{len(judged):10}{counts[Verdict.CAUGHT]:10}"
    line += f"{counts[Verdict.REFUSED]:10}{proven:10}"
    print(line + (f"   {holes} NOT CAUGHT" if holes else ""), file=stream)


def _score(trial: Trial) -> str:
    caught = trial.count(Verdict.CAUGHT)
    visible = caught + sum(one.hole for one in trial.judged)
    return f"{caught} of {visible} faults that change what a packet sees ({caught / max(visible, 1):.1%})"


def _print_proofs(trials: Sequence[Trial], stream: TextIO) -> None:
    reasons = Counter(
        one.proof.reason
        for trial in trials
        for one in trial.judged
        if one.proof is not None and one.caught.verdict is Verdict.SURVIVED
    )
    if reasons:
        print("faults that change nothing, and why:", file=stream)
    for reason, count in reasons.most_common():
        print(f"{count:5}  {reason}", file=stream)
