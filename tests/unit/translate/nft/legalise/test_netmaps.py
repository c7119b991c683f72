"""The side of NETMAP in nftables: that of the hooks from which packets come to the rule."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft, program
from translate.errors import UnsupportedError
from translate.nft import emit

TO = "-A to -j NETMAP --to 10.9.1.2/16"


@pytest.mark.parametrize("level", [0, 2])
def test_the_side_is_that_of_the_hook(level: int) -> None:
    callers = ("-A PREROUTING -d 10.1.0.0/16 -j to", "-A OUTPUT -d 10.1.0.0/16 -j to")
    source = "-A INPUT -s 10.1.0.0/16 -j NETMAP --to 10.8.0.0/16"
    text = emit(program("nat", *callers, source, TO, level=level)).text
    assert "dnat prefix to 10.9.0.0/16" in text
    assert "snat prefix to 10.8.0.0/16" in text


def test_one_address() -> None:
    rules = nft("nat", "-A POSTROUTING -j NETMAP --to 10.9.1.2", "-A PREROUTING -j NETMAP --to 10.9.1.3/32")
    assert rules["nat_POSTROUTING"] == ["snat to 10.9.1.2"]
    assert rules["nat_PREROUTING"] == ["dnat to 10.9.1.3"]


def test_both_sides_are_refused_unless_each_caller_has_a_copy() -> None:
    callers = ("-A PREROUTING -p tcp -j to", "-A POSTROUTING -p tcp -j to")
    with pytest.raises(UnsupportedError) as error:
        emit(program("nat", *callers, TO, level=0))
    assert {(r.feature, r.origin.text) for r in error.value.refusals} == {("netmap-sides", TO)}
    copied = emit(program("nat", *callers, TO, level=2)).text
    assert "dnat prefix to" in copied
    assert "snat prefix to" in copied
