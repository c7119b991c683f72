"""Random matches can be read and lowered, and show each refusal that nftables once needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from tests.lab.random.matches import matching_rules, random_matches
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.nft import emit
from translate.nft.legalise import alternatives, headers, recent
from translate.nft.limits import refusal
from translate.passes import lower
from translate.write import write_save


@pytest.mark.parametrize("family", Family)
def test_every_ruleset_can_be_read_and_lowered(family: Family) -> None:
    for seed in range(40):
        ruleset = matching_rules(seed, family)
        assert ruleset.sets
        assert lower(ruleset, level=2).chains


def test_the_same_seed_gives_the_same_text() -> None:
    assert random_matches(7) == random_matches(7)
    assert random_matches(7) != random_matches(8)
    assert write_save(matching_rules(7)) != write_save(matching_rules(7, Family.IP6))


def features(seed: int, family: Family) -> set[str]:
    """The features of a ruleset that nftables refuses."""
    try:
        emit(lower(matching_rules(seed, family), level=0))
    except UnsupportedError as e:
        return {one.feature for one in e.refusals}
    return set()


features_now = cache(features)


@dataclass(frozen=True)
class Refused:
    """A refusal that is not needed any more, and a ruleset that meets it."""

    feature: str
    put_back: Callable[[pytest.MonkeyPatch, Callable[..., object]], None]
    seed: int
    family: Family = Family.IP


def alternatives_before_state(patch: pytest.MonkeyPatch, refuse: Callable[..., object]) -> None:
    right = alternatives._cut
    patch.setattr(
        alternatives, "_cut", lambda *given: refuse() if right(*given) in given[2] else right(*given)
    )


def alternatives_beside_state(patch: pytest.MonkeyPatch, refuse: Callable[..., object]) -> None:
    right = alternatives._combinations
    patch.setattr(alternatives, "_combinations", lambda *given: right(*given) or refuse())


def negated_changes(patch: pytest.MonkeyPatch, refuse: Callable[..., object]) -> None:
    patch.setattr(alternatives, "negated_recent", refuse)


def changes_behind_state(patch: pytest.MonkeyPatch, refuse: Callable[..., object]) -> None:
    right = recent.RecentSets.cut
    patch.setattr(recent.RecentSets, "cut", lambda *given: None if right(*given) is None else refuse())


def hits(patch: pytest.MonkeyPatch, refuse: Callable[..., object]) -> None:
    patch.setattr(recent, "counted", lambda test: test.hitcount and refuse())


def ports_of_connections(patch: pytest.MonkeyPatch, refuse: Callable[..., object]) -> None:
    patch.setattr(headers, "AnyProtocol", refuse)


REFUSED = (
    Refused("any-of-then-state", alternatives_before_state, 1),
    Refused("any-of-with-state", alternatives_beside_state, 3, Family.IP6),
    Refused("recent-negated", negated_changes, 2),
    Refused("recent-after-state", changes_behind_state, 4),
    Refused("recent-hits", hits, 1),
    Refused("ct-ports", ports_of_connections, 0),
)


@pytest.mark.parametrize("refused", REFUSED, ids=lambda refused: refused.feature)
def test_random_matches_meet_a_refusal(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(refusal.REFUSED, refused.feature, "put back")

    def refuse(*_: object) -> object:
        raise refusal.CannotSay(refused.feature, "put back")

    assert refused.feature not in features_now(refused.seed, refused.family)
    refused.put_back(monkeypatch, refuse)
    assert refused.feature in features(refused.seed, refused.family)
