"""The packets that ``-m mh`` drops: a rule of their own, or a refusal."""

from __future__ import annotations

import pytest

from translate.errors import UnsupportedError
from translate.ir import Family
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset


def translated(rule: str, level: int = 0) -> str:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {rule}\nCOMMIT\n"
    return emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=level)).text


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_header_before_another_is_dropped_whatever_the_action(level: int) -> None:
    text = translated("-s fd00::/64 -p mh -m mh --mh-type 5:6 -j ACCEPT", level)
    ours = [line.split(" comment")[0].strip() for line in text.splitlines() if "mh " in line]
    assert ours == [
        "ip6 saddr fd00::/64 meta l4proto 135 mh nexthdr != 59 drop",
        "ip6 saddr fd00::/64 meta l4proto 135 mh type 5-6 accept",
    ]


def test_the_tests_after_the_match_do_not_count() -> None:
    drop, _ = (line for line in translated("-p mh -m mh -m mark --mark 7").splitlines() if "mh " in line)
    assert "mark" not in drop.split(" comment")[0]


@pytest.mark.parametrize(
    "before",
    ["-m limit --limit 5/s", "-m quota --quota 5", "-m statistic --mode random --probability 0.5"],
)
def test_a_test_before_it_that_counts_is_refused(before: str) -> None:
    translated(f"-p mh -m mh --mh-type 5 {before}")
    with pytest.raises(UnsupportedError) as caught:
        translated(f"-p mh {before} -m mh --mh-type 5")
    assert [refusal.feature for refusal in caught.value.refusals] == ["mh-order"]
