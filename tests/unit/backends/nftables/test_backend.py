from __future__ import annotations

import pytest

from backends.nftables.backend import NftablesLoader

SET = "\tset seen {\n\t\ttypeof ip saddr\n\t\tsize 65535\n\t\tflags dynamic\n\t}\n"


@pytest.mark.parametrize(
    ("rule", "counts"),
    [
        ("ct bytes > 5 accept", True),
        ("\tct original packets 1-3", True),
        ("ip daddr 10.0.0.1 ct reply avgpkt > 100 drop", True),
        ("ct packetsize", False),
        ("ct state new", False),
        ('comment "direct bytes"', False),
    ],
)
def test_rules_that_read_counts_of_connections_are_recognized(rule: str, counts: bool) -> None:
    assert NftablesLoader(rule).counts is counts


def test_sets_that_packets_fill_get_less_room() -> None:
    assert "size 1024\n" in NftablesLoader(SET)._text
    other = SET.replace("\t\tflags dynamic\n", "")
    assert NftablesLoader(other)._text == other
