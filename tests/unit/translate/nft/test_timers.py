"""``--ctexpire`` as ``ct expiration``: whole seconds, written so that ``nft list`` prints them unchanged."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.errors import UnsupportedError
from translate.nft.timers import LAST_SECOND, last_millisecond

ALL = "0:4294967295"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--ctexpire 5", "ct expiration >= 5s ct expiration < 6s"),
        ("--ctexpire 5:10", "ct expiration >= 5s ct expiration < 11s"),
        ("--ctexpire :10", "ct expiration < 11s"),
        ("--ctexpire 5:", "ct expiration >= 5s"),
        (f"--ctexpire {ALL}", "ct expiration >= 0s"),
        ("! --ctexpire 5:10", "ct expiration != 5s-10s999ms"),
        ("! --ctexpire 5:", "ct expiration != 5s-4294967s295ms"),
        ("--ctexpire 4:9 -m conntrack ! --ctexpire 6", "ct expiration { 4s-5s999ms, 7s-9s999ms }"),
    ],
)
def test_text(options: str, text: str) -> None:
    (rule,) = nft("filter", f"-A FORWARD -m conntrack {options} -j DROP")["filter_FORWARD"]
    assert rule == f"{text} drop"


@pytest.mark.parametrize("options", ["--ctexpire 4294967", "--ctexpire 5:4294967", "! --ctexpire 4294968"])
def test_a_limit_beyond_49_days_is_refused(options: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        nft("filter", f"-A FORWARD -m conntrack {options} -j DROP")
    assert [refusal.feature for refusal in caught.value.refusals] == ["ct-expire"]


def test_the_last_second_is_not_whole() -> None:
    assert last_millisecond(LAST_SECOND - 1) == f"{LAST_SECOND - 1}s999ms"
    assert last_millisecond(LAST_SECOND) == last_millisecond((1 << 32) - 1) == f"{LAST_SECOND}s295ms"
