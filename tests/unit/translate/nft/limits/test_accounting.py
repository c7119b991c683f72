"""Counters of connections in raw: refused beside templates, which have none."""

from __future__ import annotations

import pytest

from translate import nft
from translate.errors import UnsupportedError
from translate.ir import Family
from translate.passes import lower
from translate.read import read_ruleset

COUNTED = "-A PREROUTING -m connbytes --connbytes 10 --connbytes-mode packets --connbytes-dir both -j ACCEPT"


def emitted(table: str, *rules: str, level: int) -> str:
    text = "\n".join((f"*{table}", ":PREROUTING ACCEPT [0:0]", *rules, "COMMIT", ""))
    return nft.emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=level)).text


@pytest.mark.parametrize("level", [0, 2])
def test_beside_templates_alone(level: int) -> None:
    zone = "-A PREROUTING -p udp -j CT --zone 1"
    assert "ct packets" in emitted("raw", "-A PREROUTING -p udp -j NOTRACK", COUNTED, level=level)
    assert "ct packets" in emitted("mangle", COUNTED, level=level)
    with pytest.raises(UnsupportedError) as error:
        emitted("raw", zone, COUNTED, level=level)
    (refusal,) = error.value.refusals
    assert (refusal.feature, refusal.origin.text) == ("connbytes-template", COUNTED)
