"""The options of ``-m set`` in the reader, and what they mean for the sets of a ruleset."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate.errors import ParseError
from translate.ir import Ruleset, SetTest, Test
from translate.nft import emit as to_nft
from translate.passes import lower
from translate.read import read_ipsets, read_ruleset, with_sets
from translate.write import write_save

SETS = b"""create nets hash:net family inet
add nets 10.0.0.0/8
add nets 10.1.0.0/16 nomatch
create hosts hash:ip family inet
add hosts 10.0.0.1
create counted hash:ip family inet counters
add counted 10.0.0.1 packets 1 bytes 50
"""


def _read(*options: str) -> Ruleset:
    rules = "".join(f"-A FORWARD -m set {option} -j DROP\n" for option in options)
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n"
    ruleset = with_sets(read_ruleset(text.encode(), name="rules"), read_ipsets(SETS, name="sets"))
    assert write_save(ruleset) == text
    return ruleset


def _test(ruleset: Ruleset) -> SetTest:
    ((_, test),) = ruleset.set_tests()
    return test


def test_elements_with_nomatch_become_a_set_of_their_own() -> None:
    ruleset = _read("--match-set nets src --return-nomatch", "--match-set nets src")
    text = to_nft(lower(ruleset, level=0)).text
    assert "ip saddr @set_nets_nomatch drop" in text
    assert "ip saddr @set_nets drop" in text


def test_a_set_without_nets_has_no_such_elements() -> None:
    assert not _test(_read("--match-set hosts src --return-nomatch")).nomatch


@pytest.mark.parametrize(
    "options", ["--packets-gt 5", "! --packets-eq 0 --bytes-lt 10", "! --update-counters --bytes-gt 0"]
)
def test_a_set_without_counters_compares_none(options: str) -> None:
    ruleset = _read(f"--match-set hosts src {options}")
    assert _test(ruleset) == _test(_read("--match-set hosts src"))
    assert not any(ruleset.unknowns())


def test_counters_of_elements_are_not_modelled() -> None:
    ruleset = _read("--match-set counted src --packets-gt 5", "--match-set counted src ! --update-counters")
    ((rule, unknown),) = ruleset.unknowns()
    assert (rule.origin.line, unknown.feature) == (3, "unmodelled")
    assert not rule.tests


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--packets-eq 1 --packets-gt 2", "only one comparison of packets"),
        ("--bytes-lt 18446744073709551616", "is not a number"),
        ("! --packets-lt 1", "--packets-lt"),
    ],
)
def test_wrong(options: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        program("filter", f"-A FORWARD -m set --match-set nets src {options}")


def _changes(options: str) -> tuple[Test, ...]:
    text = f"*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -j SET {options}\nCOMMIT\n"
    return read_ruleset(text.encode(), name="rules").tables[0].chains[0].rules[0].tests


@pytest.mark.parametrize("option", ["--exist", "--timeout 5"])
def test_options_of_an_addition_stand_before_it_or_behind_it(option: str) -> None:
    """``set_target_check`` looks at the options when all of them are read (iptables 1.8.9 and 1.8.11)."""
    assert _changes(f"{option} --add-set nets src") == _changes(f"--add-set nets src {option}")
    with pytest.raises(ParseError, match="needs --add-set"):
        _changes(f"--del-set nets src {option}")
