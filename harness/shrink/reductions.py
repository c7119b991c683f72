"""Reduction of every difference of a corpus: one case for each fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backends.model.contract import Backend, Job
from harness.diff.batch import Batch
from harness.diff.deciding_rules import deciding_rules
from harness.diff.parity import Plan, run_parity
from harness.diff.result import Difference
from harness.files.userfiles import write_text
from harness.shrink.loading import LoadShrinker, complaint
from harness.shrink.proposals import Shown, rule_ids, with_rules
from harness.shrink.report import load_report
from harness.shrink.shrink import Shrinker, write_shrunk
from harness.shrink.translator import Translator
from translate.dataclass import dataclass, replace
from translate.errors import InputError, MachineError
from translate.ir import Ruleset
from translate.write import write_save

__all__ = ["Reduced", "reduce_differences"]


@dataclass(frozen=True, slots=True)
class Reduced:
    """A reduced fault: its folder, its differences, and the numbers of rules, steps and comparisons."""

    folder: Path
    what: str
    rules: int
    steps: int
    comparisons: int


@dataclass(slots=True)
class _Reducer:
    folder: Path
    backend: Backend
    reference: Backend
    level: int
    most: int
    tell: Callable[[int, int, int], None]
    made: list[Reduced]
    texts: set[str]

    def batch(self, batch: Batch) -> None:
        """Reduce the faults that a batch shows."""
        ruleset = batch.ruleset
        if isinstance(self.backend, Translator):
            loaded = self._loadable(self.backend, batch)
            if loaded is None:
                return
            ruleset = loaded
        for difference in self._differences(replace(batch, rules=ruleset)):
            if len(self.made) >= self.most:
                return
            flow = next(flow for flow in batch.flows if flow.id == difference.flow_id)
            shrinker = Shrinker(
                difference=difference,
                backend=self.backend,
                reference=self.reference,
                node=batch.node,
                level=self.level,
                tell=self.tell,
            )
            try:
                shown = shrinker.shrink(Shown(ruleset, flow))
            except InputError:
                continue  # it depends on how the rules were written, or on another flow
            text = write_save(shown.ruleset)
            if text not in self.texts:
                self.texts.add(text)
                folder = self._next()
                write_shrunk(folder, shown, shrinker)
                what = f"{difference.backend} differs in {difference.field}"
                self._note(folder, what, shown, shrinker.comparisons, len(shown.flow.steps))

    def _differences(self, batch: Batch) -> Iterator[Difference]:
        """Yield one difference for each field and each list of deciding rules."""
        report = run_parity(
            Plan(batches=(batch,), level=self.level),
            (self.backend,),
            reference=self.reference,
            rules=deciding_rules,
            progress=lambda *_: None,
        )
        known: set[tuple[str, tuple[str, ...]]] = set()
        for difference in report.differences:
            key = difference.field, difference.rules
            if difference.field != "share" and key not in known:
                known.add(key)
                yield difference

    def _loadable(self, translator: Translator, batch: Batch) -> Ruleset | None:
        """Reduce each rule whose translation nft does not load, and return the ruleset without these rules.

        None if other rules make it fail, or if there are more faults than wanted.
        """
        ruleset = batch.ruleset
        while len(self.made) < self.most:
            job = Job(rules=ruleset, node=batch.node, level=self.level)
            message = _load_error(translator, job)
            if message is None:
                return ruleset
            wanted = complaint(message)
            shrinker = LoadShrinker(backend=translator, wanted=wanted, level=self.level, tell=self.tell)
            shown = shrinker.shrink(job, Shown(ruleset, batch.flows[0]))
            folder = self._next()
            text = load_report(shown.ruleset, shrinker.message, backend=translator)
            folder.mkdir(parents=True)
            write_text(folder / "rules.iptables-save", write_save(shown.ruleset))
            write_text(folder / "report.md", text)
            self._note(folder, f"nft: {wanted}", shown, shrinker.attempts, 0)
            rest = _without_alike(translator, job, wanted)
            if rest is None:
                return None
            ruleset = rest
        return None

    def _next(self) -> Path:
        return self.folder / f"{self.backend.name}-{len(self.made) + 1:02}"

    def _note(self, folder: Path, what: str, shown: Shown, comparisons: int, steps: int) -> None:
        self.made.append(Reduced(folder, what, len(rule_ids(shown.ruleset)), steps, comparisons))


def reduce_differences(
    batches: Sequence[Batch],
    backends: Sequence[Backend],
    *,
    reference: Backend,
    level: int,
    folder: Path,
    most: int,
    tell: Callable[[int, int, int], None],
) -> tuple[Reduced, ...]:
    """Write a folder for each fault that the batches show, at most ``most``, and return them."""
    made: list[Reduced] = []
    for backend in backends:
        reducer = _Reducer(folder, backend, reference, level, most, tell, made, set())
        for batch in batches:
            reducer.batch(batch)
    return tuple(made)


def _load_error(translator: Translator, job: Job) -> str | None:
    try:
        with translator.open(job):
            return None
    except MachineError as e:
        return str(e)


def _without_alike(translator: Translator, job: Job, wanted: str) -> Ruleset | None:
    """Return the rules without those that fail alone with the same error; None if no rule does."""
    ids = rule_ids(job.ruleset)
    kept = []
    for rule in ids:
        alone = with_rules(job.ruleset, {rule})
        message = None if alone is None else _load_error(translator, replace(job, rules=alone))
        if message is None or complaint(message) != wanted:
            kept.append(rule)
    return None if len(kept) == len(ids) else with_rules(job.ruleset, frozenset(kept))
