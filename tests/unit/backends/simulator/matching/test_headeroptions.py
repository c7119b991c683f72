from __future__ import annotations

import pytest

from backends.model.packet import Packet
from backends.simulator.matching.headeroptions import begins_with, options_hold
from harness.corpus.formats import ruletext
from translate.ir import Family, Field, HeaderOptions

HOP, DESTINATION = Field.HOP_LENGTH, Field.DESTINATION_LENGTH


def listed(*options: tuple[int, int | None], header: Field = DESTINATION) -> HeaderOptions:
    return HeaderOptions(header=header, options=options)


@pytest.mark.parametrize(
    ("data", "options", "holds"),
    [
        ("0502abcd0100", ((5, 2),), True),
        ("0502abcd0100", ((5, None), (1, 0)), True),
        ("0502abcd0100", ((5, 3),), False),
        ("0502abcd0100", ((1, None),), False),
        ("0502abcd0000", ((5, None), (0, None), (0, None)), True),
        ("0502abcd0000", ((5, None), (0, None), (0, None), (0, None)), False),
        # the last option may end behind the header, another one may not
        ("05c800000000", ((5, 200),), True),
        ("05c800000000", ((5, 200), (0, None)), False),
        ("000000000005", (*[(0, None)] * 5, (5, None)), False),
    ],
)
def test_the_first_options_count(data: str, options: tuple[tuple[int, int | None], ...], holds: bool) -> None:
    assert begins_with(listed(*options), bytes.fromhex(data)) is holds


def test_each_header_has_its_options() -> None:
    packet = Packet(family=Family.IP6, src=1, dst=2, proto=17, sport=3, dport=4, destination_options=1)
    assert options_hold(listed((30, 12)), packet)
    assert not options_hold(listed((30, 12), header=HOP), packet)


def test_in_words() -> None:
    text = ruletext.test_text(listed((5, 2), (0, None), header=HOP), Family.IP6)
    assert text == "its hop-by-hop options begin with 5 with 2 bytes, then 0"
