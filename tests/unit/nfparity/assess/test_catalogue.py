"""The catalogue is complete, and a bad one is refused."""

from __future__ import annotations

import pytest

from nfparity.assess.catalogue import (
    CATALOGUE,
    IPVS_CATALOGUE,
    Decided,
    catalogue,
    entry,
    ipvs_catalogue,
    read_catalogue,
)
from nfparity.assess.detectors import DETECTORS
from nfparity.assess.fate import Fate
from nfparity.assess.ipvs.differences import CLAIMED

GOOD = """
[K01]
title = "a"
trigger = "b"
versions = ["1.29", "1.33"]
before = "c"
after = "d"
action = "e"
source = "f"
decided = "replay"
expects = ["service > local"]
"""


def test_the_numbers_have_no_gap() -> None:
    assert [one.id for one in catalogue()] == [f"K{n:02}" for n in range(1, 48)]
    ids = [one.id for one in ipvs_catalogue()]
    assert ids == [f"I{n:02}" for n in range(1, len(ids) + 1)]


def test_every_change_from_ipvs_is_decided_by_packets_and_can_be_claimed() -> None:
    assert all(one.decided is Decided.REPLAY for one in ipvs_catalogue())
    assert {one.id for one in ipvs_catalogue()} == set(CLAIMED)


def test_what_packets_decide_has_a_detector_and_nothing_else_has() -> None:
    decided = {one.id for one in catalogue() if one.decided is Decided.REPLAY}
    assert {one.k for one in DETECTORS} == decided
    assert len(DETECTORS) == len(decided)


def test_an_entry_is_read() -> None:
    (one,) = read_catalogue(GOOD)
    assert one.expects == {(Fate.SERVICE, Fate.LOCAL)}
    assert (one.first, one.last) == ((1, 29), (1, 33))
    assert one.allows(Fate.SERVICE, Fate.LOCAL)
    assert not one.allows(Fate.LOCAL, Fate.SERVICE)


@pytest.mark.parametrize(
    ("version", "holds"), [(None, True), ((1, 28), False), ((1, 29), True), ((1, 33), True), ((1, 34), False)]
)
def test_it_holds_from_its_first_to_its_last_version(version: tuple[int, int] | None, holds: bool) -> None:
    (one,) = read_catalogue(GOOD)
    assert one.holds_at(version) is holds


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('title = "a"\n', "", "missing"),
        ('title = "a"', 'title = ""', "expected text"),
        ('title = "a"', 'title = "a"\nother = "x"', "not known"),
        ('["1.29", "1.33"]', '["1.29"]', "the first and the last"),
        ('"1.29"', '"one"', "no Kubernetes minor"),
        ('"replay"', '"guess"', "guess"),
        ('decided = "replay"', 'decided = "replay"\nreason = "x"', "needs a reason"),
        ('decided = "replay"', 'decided = "out-of-reach"', "needs a reason"),
        ('expects = ["service > local"]\n', "", "needs expectations"),
        ("service > local", "service", "not a pair of fates"),
        ("service > local", "service > moon", "moon"),
    ],
)
def test_a_bad_entry_is_refused(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(ValueError, match=said):
        read_catalogue(GOOD.replace(old, new))


def test_an_entry_is_found_by_its_id() -> None:
    assert entry("K06").title.startswith("undefined ports")
    with pytest.raises(KeyError):
        entry("K99")


def test_the_file_is_ascii() -> None:
    assert CATALOGUE.read_bytes().isascii()
    assert IPVS_CATALOGUE.read_bytes().isascii()
