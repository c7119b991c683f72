"""Reduction of one difference of one backend, and the case folder that shows the result."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from backends.model.contract import Backend, Job
from backends.model.node import Node
from harness.corpus.coverage import count_in_simulator
from harness.corpus.newcase import write_case
from harness.diff.batch import Batch
from harness.diff.parity import Plan, run_parity
from harness.diff.result import Difference
from harness.files.userfiles import write_text
from harness.shrink.engine import reduce_with, smaller_lists
from harness.shrink.proposals import (
    Shown,
    read_again,
    rule_ids,
    with_rules,
    without_call,
    without_header,
    without_part,
    without_step,
)
from harness.shrink.report import difference_report
from harness.shrink.translator import Translator
from translate.dataclass import dataclass, replace
from translate.errors import InputError, MachineError, UnsupportedError
from translate.ir import Ruleset

__all__ = ["Shrinker", "write_shrunk"]


@dataclass(slots=True)
class Shrinker:
    """Finds a small ruleset and flow that still show ``difference``.

    A smaller one shows it if the same backend differs from the reference in the same field. ``tell`` is
    called with the numbers of rules and steps that are left, and of comparisons made.
    """

    difference: Difference
    backend: Backend
    reference: Backend
    node: Node
    level: int
    tell: Callable[[int, int, int], None]
    comparisons: int = 0
    last: Difference | None = None

    def shrink(self, shown: Shown) -> Shown:
        """Return the smallest rules and flow found. InputError if ``shown`` does not show the difference."""
        start = read_again(shown.ruleset)
        if start is None or not self._shows(replace(shown, ruleset=start)):
            raise InputError(
                f"the difference of {self.difference.backend} in {self.difference.field} does not show when "
                f"flow {shown.flow.id} runs alone, with the rules that nfparity has rewritten"
            )
        best = replace(shown, ruleset=start)
        size = None
        while size != (size := self._size(best)):
            best = reduce_with(best, (without_step,), self._shows)
            best = replace(best, ruleset=self._fewer_rules(best))
            best = reduce_with(best, (without_call, without_part, without_header), self._shows)
        return best

    def _fewer_rules(self, shown: Shown) -> Ruleset:
        """Leave out rules: first all that the flow does not match, then as many others as possible."""
        best = shown.ruleset
        counts = count_in_simulator(Job(rules=best, node=self.node, level=self.level), (shown.flow,))
        hit = with_rules(best, {rule for rule, (matched, _) in counts.items() if matched})
        if hit is not None and len(rule_ids(hit)) < len(rule_ids(best)):
            smaller = replace(shown, ruleset=hit)
            if self._shows(smaller):
                best = hit
        kept = smaller_lists(
            rule_ids(best),
            lambda ids: (
                (made := with_rules(best, frozenset(ids))) is not None
                and self._shows(replace(shown, ruleset=made))
            ),
        )
        return with_rules(best, frozenset(kept)) or best

    def _shows(self, shown: Shown) -> bool:
        self.comparisons += 1
        batch = Batch(
            rules_path=self.difference.rules_path,
            rules=shown.ruleset,
            node=self.node,
            flows=(shown.flow,),
            corpus=None,
        )
        try:
            report = run_parity(
                Plan(batches=(batch,), level=self.level),
                (self.backend,),
                reference=self.reference,
                rules=lambda *_: (),
                progress=lambda *_: None,
            )
        except (UnsupportedError, MachineError):
            return False  # refused or not loaded, which is another difference
        for difference in report.differences:
            if difference.field == self.difference.field:
                self.last = difference
                self.tell(*self._size(shown), self.comparisons)
                return True
        return False

    @staticmethod
    def _size(shown: Shown) -> tuple[int, int]:
        return len(rule_ids(shown.ruleset)), len(shown.flow.steps)


def write_shrunk(folder: Path, shown: Shown, shrinker: Shrinker) -> None:
    """Write the result as a case folder, with ``report.md``. Raises InputError if the folder exists."""
    wanted = shrinker.last or shrinker.difference
    purpose = f"{wanted.backend} differs in {wanted.field} of the {wanted.step_text}"
    job = Job(rules=shown.ruleset, node=shrinker.node, level=shrinker.level)
    write_case(folder, job=job, flows=(shown.flow,), purpose=purpose, origin="nfparity diff --shrink")
    words = "corpus shrink" if isinstance(shrinker.backend, Translator) else "diff"
    command = f"nfparity {words} --corpus {folder} {_chosen(shrinker)} -O {shrinker.level}"
    text = difference_report(shown.ruleset, wanted, command=command, backend=shrinker.backend)
    write_text(folder / "report.md", text)


def _chosen(shrinker: Shrinker) -> str:
    """Return the options that choose the backend of a shrinker."""
    if isinstance(shrinker.backend, Translator):
        return f"--translator {shlex.quote(shrinker.backend.command)} -o again"
    return f"--backends {shrinker.backend.name}"
