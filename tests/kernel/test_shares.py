"""The shares of a service's endpoints on every backend, with 20,000 new connections each.

Chance comes from the kernel and cannot be seeded. Each test calls fair shares unfair with a probability of at
most one in a million (:data:`harness.diff.shares.FALSE_ALARM_RATE`).
"""

from __future__ import annotations

import pytest

from harness.diff.backends import backend
from tests.kernel.helpers.availability import require
from tests.lab.share_tests import SUBJECTS, draw, main
from translate.errors import UnsupportedError
from translate.ir import Family

CONNECTIONS = 20_000


def able(subject: str) -> None:
    require(backend(SUBJECTS[subject][0]))


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(name, marks=[] if name.endswith(("legacy", "O2")) else [pytest.mark.slow])
        for name in SUBJECTS
    ],
)
def test_endpoints_are_drawn_fairly(subject: str) -> None:
    able(subject)
    drawn = draw(subject, connections=CONNECTIONS)
    assert sum(drawn.tally.counts) == CONNECTIONS
    assert not drawn.unfair, (drawn.tally, drawn.least_p)


def test_what_is_printed_does_not_depend_on_what_was_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    able("nft-O2")
    words = ["--connections", "3000", "--shift", "0.2", "--subjects", "nft-O2"]
    monkeypatch.setattr("sys.argv", ["draws", *words])
    printed = []
    for _ in range(2):
        assert main() == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]


@pytest.mark.parametrize(
    "subject", ["iptables-legacy", "nft-O1", pytest.param("tc-O1", marks=pytest.mark.slow)]
)
def test_endpoints_are_drawn_fairly_over_ipv6(subject: str) -> None:
    able(subject)
    try:
        drawn = draw(subject, family=Family.IP6, connections=CONNECTIONS)
    except UnsupportedError as e:
        pytest.skip(str(e).splitlines()[0])
    assert not drawn.unfair, (drawn.tally, drawn.least_p)


@pytest.mark.parametrize(
    "subject", ["nft-O1", *(pytest.param(s, marks=pytest.mark.slow) for s in ("nft-O0", "tc-O1", "tc-O2"))]
)
def test_a_share_that_is_too_large_is_unfair(subject: str) -> None:
    able(subject)
    # 0.04 among 20,000 shows as surely as 0.01 among 200,000 does, which takes too long here.
    assert draw(subject, connections=CONNECTIONS, shift=0.04).unfair
