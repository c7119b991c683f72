"""NFQUEUE where nftables treats a queued packet otherwise."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate import nft
from translate.errors import UnsupportedError


@pytest.mark.parametrize(
    ("table", "chain", "feature"),
    [
        ("nat", "PREROUTING", "queue-nat"),
        ("nat", "POSTROUTING", "queue-nat"),
        ("mangle", "OUTPUT", "queue-route"),
        ("mangle", "FORWARD", None),
        ("raw", "OUTPUT", None),
    ],
)
@pytest.mark.parametrize("level", [0, 2])
def test_refused_with_the_line(table: str, chain: str, feature: str | None, level: int) -> None:
    lowered = program(table, f"-A {chain} -p udp -j NFQUEUE --queue-num 3 --queue-bypass", level=level)
    if feature is None:
        assert "queue num 3 bypass" in nft.emit(lowered).text
        return
    with pytest.raises(UnsupportedError) as error:
        nft.emit(lowered)
    assert [refusal.feature for refusal in error.value.refusals] == [feature]
