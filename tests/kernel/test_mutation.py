"""The harness has teeth: a spread of planted faults, on the nftables and on the tc side."""

from __future__ import annotations

import pytest

from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from tests.lab.mutation.hunt import Verdict
from tests.lab.mutation.rulesets import batches_of
from tests.lab.mutation.trial import BACKENDS, SUBJECTS, try_all

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize(
    ("rules", "subject", "every", "least"),
    [
        pytest.param("kind", "nft-O0", 13, 20, marks=pytest.mark.slow),
        pytest.param("kind", "nft-O1", 11, 20, marks=pytest.mark.slow),
        ("kind", "nft-O2", 18, 8),
        pytest.param("kind", "nft-O2", 9, 18, marks=pytest.mark.slow),
        pytest.param("kind", "tc-O1", 41, 5, marks=pytest.mark.slow),
        pytest.param("cluster", "nft-O2", 29, 15, marks=pytest.mark.slow),
        pytest.param("cluster6", "nft-O2", 29, 15, marks=pytest.mark.slow),
    ],
)
def test_every_planted_fault_is_caught_or_proven_to_change_nothing(
    rules: str, subject: str, every: int, least: int
) -> None:
    require(backend(BACKENDS[SUBJECTS[subject][0]]))
    (trial,) = try_all(rules, batches_of(rules), subjects=[subject], every=every, many=400)
    assert [j.caught.fault.key for j in trial.judged if j.hole] == []
    assert [j.caught.fault.key for j in trial.judged if j.disproved] == []
    assert trial.count(Verdict.CAUGHT) >= least
