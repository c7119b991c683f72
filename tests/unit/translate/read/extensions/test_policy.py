"""``-m policy`` in the reader, and the states of IPsec that nftables cannot compare."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.errors import ParseError, UnsupportedError
from translate.ir import Field, FieldTest, Interval, Rule
from translate.read import read_ruleset
from translate.write import write_save

STATES = FieldTest(field=Field.IPSEC_IN_STATES, values=(Interval.point(1),))


def read(options: str) -> Rule:
    text = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m policy --dir in {options} -j DROP\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules")
    assert write_save(ruleset) == text
    return ruleset.tables[0].chains[0].rules[0]


@pytest.mark.parametrize(
    "options",
    [
        "--pol ipsec --reqid 1 --proto esp",
        "--pol ipsec --reqid 1 ! --spi 0x5",
        "--pol ipsec --mode tunnel ! --tunnel-src 10.0.0.1",
        "--pol ipsec --strict --reqid 1 --next --reqid 2 --next --reqid 3 --next --reqid 4 --proto esp",
    ],
)
def test_states_are_read_and_refused(options: str) -> None:
    assert read(options).tests[1:] == (STATES,)
    with pytest.raises(UnsupportedError, match="IPsec"):
        nft("filter", f"-A INPUT -m policy --dir in {options} -j DROP")


EXISTS = "meta ipsec exists"


@pytest.mark.parametrize(
    ("way", "options", "tests", "rest"),
    [
        ("in", "--reqid 5", EXISTS, [f"ipsec in spnum {n} reqid 5 drop" for n in range(6)]),
        (
            "out",
            "! --spi 0x10",
            "rt ipsec exists",
            [f"ipsec out spnum {n} spi != 0x10000000 drop" for n in range(6)],
        ),
        (
            "in",
            "--strict --reqid 5 --next ! --reqid 6 --spi 0x10",
            f"{EXISTS} ipsec in spnum 1 reqid 5 ipsec in spnum 0 reqid != 6 ipsec in spnum 0 spi 0x10000000",
            ["ipsec in spnum 2 reqid >= 0 return", "drop"],
        ),
        (
            "out",
            "--strict --reqid 5 --next --reqid 6",
            "rt ipsec exists ipsec out spnum 0 reqid 5 ipsec out spnum 1 reqid 6",
            ["ipsec out spnum 2 reqid >= 0 return", "drop"],
        ),
    ],
)
def test_states_by_their_place(way: str, options: str, tests: str, rest: list[str]) -> None:
    """The last state that a packet passed is the first element, and ``--spi`` is read as the machine does."""
    chains = nft("mangle", f"-A FORWARD -m policy --dir {way} --pol ipsec {options} -j DROP")
    assert chains["mangle_FORWARD"] == [f"{tests} jump mangle_FORWARD_2"]
    assert chains["mangle_FORWARD_2"] == rest


def test_without_a_policy_there_are_no_states() -> None:
    assert read("--pol none --reqid 1").tests == read("--pol none").tests


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--pol none --strict", '"--strict" needs "--pol ipsec"'),
        ("--strict", "needs options for each policy"),
        ("--strict --reqid 1 --next", "needs options for each policy"),
        ("--reqid 1 --next --reqid 2", '"--next" needs "--strict"'),
        ("--reqid 1 --reqid 1", '"--reqid" is given twice'),
        ("--tunnel-src 10.0.0.1", '"--tunnel-src" needs "--mode tunnel"'),
        ("! --mode tunnel --tunnel-dst 10.0.0.1", '"--tunnel-dst" needs "--mode tunnel"'),
        ("--proto tcp", '"tcp" is no protocol of IPsec'),
        ("--mode beet", 'unknown mode "beet"'),
        ("--spi 4294967296", "4294967296"),
        (f"--strict {'--reqid 1 --next ' * 4} --reqid 1", "at most 4 policies"),
    ],
)
def test_wrong(options: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(options)


def test_ends_of_a_tunnel_are_not_checked_without_a_policy() -> None:
    """``policy_check`` looks at the elements only with ``--pol ipsec``."""
    assert read("--pol none --tunnel-src 10.0.0.1").tests == read("--pol none").tests
