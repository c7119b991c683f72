"""A trial: all faults of one translation, planted and judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TextIO

from backends.simulator import SimulatorBackend
from harness.diff.batch import Batch
from tests.lab.mutation.fault import Fault
from tests.lab.mutation.hunt import Caught, Verdict, hunt
from tests.lab.mutation.planter import BpfPlanter, NftPlanter, Planter
from tests.lab.mutation.proofs import Proof, proof_of
from tests.lab.mutation.testbed import Testbed
from tests.lab.mutation.workload import prepare
from translate.errors import InputError, MachineError
from translate.ir import Program
from translate.passes import lower

__all__ = ["BACKENDS", "FEW", "PLANTERS", "SUBJECTS", "Judged", "Trial", "try_all"]

SUBJECTS: Final = {
    "nft-O0": ("nft", 0),
    "nft-O1": ("nft", 1),
    "nft-O2": ("nft", 2),
    "tc-O0": ("tc", 0),
    "tc-O1": ("tc", 1),
    "tc-O2": ("tc", 2),
}
"""The subjects of faults: a translation at a level."""

PLANTERS: Final[dict[str, Callable[[Program], Planter[Any]]]] = {"nft": NftPlanter, "tc": BpfPlanter}

BACKENDS: Final = {"nft": "nftables", "tc": "tc-ebpf"}
"""The backend that carries the packets of a translation."""

FEW: Final = 24
"""The repetitions of a flow with a random outcome: a branch of one half is missed once in 2**24."""

MANY: Final = 1600
"""The repetitions of one flow to each service: a share of 1/4 instead of 1/3 is missed about once in 70."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A fault, its result, and the proof that it changes nothing, if one applies."""

    caught: Caught
    proof: Proof | None

    @property
    def hole(self) -> bool:
        """True if the fault survived without a proof."""
        return self.caught.verdict is Verdict.SURVIVED and self.proof is None

    @property
    def disproved(self) -> bool:
        """True if a packet showed a difference that a proof excludes."""
        return self.caught.verdict is Verdict.CAUGHT and self.proof is not None


@dataclass(frozen=True, slots=True)
class Trial:
    """All faults of one subject in one ruleset, judged."""

    ruleset: str
    subject: str
    judged: tuple[Judged, ...]

    @property
    def clean(self) -> bool:
        """True if no fault is a hole and no proof is wrong."""
        return not any(judged.hole or judged.disproved for judged in self.judged)

    def count(self, verdict: Verdict) -> int:
        """Return the number of faults with this result."""
        return sum(judged.caught.verdict is verdict for judged in self.judged)


def try_all(
    ruleset: str,
    batches: Sequence[Batch],
    *,
    subjects: Sequence[str],
    every: int = 1,
    many: int = MANY,
    progress: TextIO | None = None,
) -> Iterator[Trial]:
    """Plant every ``every``-th fault of each subject, and judge it by the flows of ``batches``.

    ``many`` is the number of repetitions of a choice among endpoints. The batches are of one ruleset, whose
    name in :mod:`~tests.lab.mutation.proofs` is ``ruleset``. Raises InputError for an unknown subject,
    UnsupportedError when a translation cannot express the rules, MachineError when flows show a difference
    with nothing planted.
    """
    for name in subjects:
        if name not in SUBJECTS:
            raise InputError(f"unknown subject {name!r}; known are {', '.join(SUBJECTS)}")
    if len({batch.rules_path for batch in batches}) != 1:
        raise InputError(f"{ruleset}: faults are planted in one ruleset")
    workloads = prepare(batches, SimulatorBackend(), few=FEW, many=many)
    for name in subjects:
        kind, level = SUBJECTS[name]
        planter = PLANTERS[kind](lower(batches[0].ruleset, level=level))
        chosen = planter.faults[::every]
        planter.choose(chosen)
        judged: list[Judged] = []
        proofs = {fault: proof for fault in chosen if (proof := _proof(ruleset, name, planter, fault))}
        with Testbed(planter, workloads) as testbed:
            if flaw := testbed.first_difference(None):
                raise MachineError(f"{ruleset} {name}: differs without any fault: {flaw}")
            for verdict in hunt(chosen, testbed, proven=proofs):
                judged.append(Judged(verdict, proofs.get(verdict.fault)))
                if progress is not None:
                    progress.write(f"\r{ruleset} {name}: {len(judged)} of {len(chosen)} faults ")
                    progress.flush()
            if flaw := testbed.first_difference(None, repeated=False):
                raise MachineError(f"{ruleset} {name}: differs when all faults are gone: {flaw}")
        if progress is not None:
            progress.write("\r" + " " * 60 + "\r")
        yield Trial(ruleset, name, tuple(judged))


def _proof(ruleset: str, subject: str, planter: Planter[Any], fault: Fault) -> Proof | None:
    """Return the known proof for the fault, or the one that follows from the text of the translation."""
    if known := proof_of(ruleset, subject, fault):
        return known
    reason = planter.unchanged(fault)
    return None if reason is None else Proof(re.escape(fault.key), reason)
