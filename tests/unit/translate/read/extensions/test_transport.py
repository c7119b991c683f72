"""``-m tcp --tcp-option`` in the reader and in nft's spelling."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft, program
from translate.bpf import emit
from translate.errors import ParseError, UnsupportedError


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--tcp-option 8", "meta l4proto tcp tcp option 8 exists drop"),
        ("--tcp-option 0x2 --dport 80", "tcp dport 80 tcp option 2 exists drop"),
        # of a later fragment, "missing" alone would hold
        ("! --tcp-option 255", "meta l4proto tcp tcp sport >= 0 tcp option 255 missing drop"),
    ],
)
@pytest.mark.parametrize("level", [0, 2])
def test_nftables(options: str, text: str, level: int) -> None:
    chains = nft("filter", f"-A FORWARD -p tcp -m tcp {options} -j DROP", level=level)
    assert chains["filter_FORWARD"] == [text]


def test_tc_ebpf() -> None:
    with pytest.raises(UnsupportedError, match="options of TCP"):
        emit(program("filter", "-A FORWARD -p tcp -m tcp --tcp-option 8 -j DROP"))


@pytest.mark.parametrize("number", ["0", "256", "mss"])
def test_wrong(number: str) -> None:
    with pytest.raises(ParseError, match=number):
        program("filter", f"-A FORWARD -p tcp -m tcp --tcp-option {number}")
