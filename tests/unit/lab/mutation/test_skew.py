"""A skew of a wanted size, in each form in which translations draw."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import translate.bpf
import translate.nft
from backends.simulator import simulate
from tests.lab.mutation.skew import skewed
from tests.lab.share_tests import one_service
from translate.errors import InputError
from translate.ir import RANDOM_RANGE, Family
from translate.passes import lower


def translated(kind: str, level: int, endpoints: int = 3) -> str:
    job, _ = one_service(Family.IP, endpoints=endpoints)
    program = lower(job.ruleset, level=level)
    return translate.nft.emit(program).text if kind == "nft" else translate.bpf.emit(program).render()


@pytest.mark.parametrize(("kind", "level"), [("nft", 0), ("tc", 0), ("tc", 1)])
def test_a_threshold_moves_by_the_shift(kind: str, level: int) -> None:
    text = translated(kind, level)
    changed = [
        (a, b) for a, b in zip(text.split("\n"), skewed(text, 0.01).split("\n"), strict=True) if a != b
    ]
    ((before, after),) = changed
    (old,) = re.findall(r"< (0x[0-9a-f]+|\d+)", before)
    (new,) = re.findall(r"< (0x[0-9a-f]+|\d+)", after)
    assert int(new, 0) - int(old, 0) == round(0.01 * RANDOM_RANGE)


def test_an_equal_choice_becomes_uneven() -> None:
    text = skewed(translated("nft", 1), 0.01)
    assert "typeof numgen random mod 30000 : verdict\n\t\tflags interval" in text
    assert "numgen random mod 30000 vmap @" in text
    edges = [(int(a), int(b)) for a, b in re.findall(r"(?m)^\t\t\t(\d+)-(\d+) ", text)]
    shares = [Fraction(b - a + 1, 30000) for a, b in edges]
    assert shares == [Fraction(1, 3) + Fraction(1, 100), Fraction(1, 3) - Fraction(1, 100), Fraction(1, 3)]
    assert [a for a, _ in edges] == [0, *(b + 1 for _, b in edges[:-1])]


def test_what_draws_nothing_cannot_be_skewed() -> None:
    with pytest.raises(InputError, match="nothing is drawn"):
        skewed(translated("nft", 1, endpoints=1), 0.01)


def test_the_service_has_as_many_ways_as_endpoints() -> None:
    for family in Family:
        job, flow = one_service(family, endpoints=4)
        assert len({b.outcomes[0].dst for b in simulate(job, flow).branches}) == 4
