"""The harness has teeth: a spread of planted faults, on the nftables and on the tc side."""

from __future__ import annotations

import pytest

from harness.backends import backend
from harness.mutation.arenas import arena
from harness.mutation.hunt import Verdict
from harness.mutation.trial import try_all

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

BACKENDS = {"nft": "nftables", "tc": "tc-ebpf"}


@pytest.mark.parametrize(
    ("subject", "every", "least"), [("nft-O0", 7, 40), ("nft-O1", 5, 50), ("tc-O1", 13, 20)]
)
def test_every_planted_fault_is_caught_or_proven_to_change_nothing(
    subject: str, every: int, least: int
) -> None:
    able = backend(BACKENDS[subject.partition("-")[0]]).probe()
    if not able.ok:
        pytest.skip(able.reason)
    (trial,) = try_all("kind", arena("kind"), subjects=[subject], every=every)
    assert [j.caught.fault.key for j in trial.judged if j.hole] == []
    assert [j.caught.fault.key for j in trial.judged if j.disproved] == []
    assert trial.count(Verdict.CAUGHT) >= least
