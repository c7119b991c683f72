"""``-m string``: a text in one place, in none of a few places, and in other places."""

from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from translate.errors import ParseError
from translate.ir import Test, WordTest, read_words
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset


def words(text: str, *, no: bool = False) -> WordTest:
    return WordTest(words=read_words(text), negated=no)


NEVER = words("0&0xf0000000=0")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--string GET --from 40 --to 43", (words("39&0xffffff=0x474554"),)),
        ("--string GETx --from 40 --to 44", (words("40=0x47455478"),)),
        ("--string GETxy --from 40 --to 45", (words("40=0x47455478&&41=0x45547879"),)),
        ("--string 12345678 --from 40 --to 48", (words("40=0x31323334&&44=0x35363738"),)),
        ('--hex-string "|45|" --to 1', (words("0&0xff000000=0x45000000"),)),
        ('--hex-string "|45 00|a" --from 1 --to 4', (words("0&0xffffff=0x450061"),)),
        ('--hex-string "a\\\\|b" --from 40 --to 43', (words("39&0xffffff=0x617c62"),)),
        ('--hex-string "|41||b" --from 40 --to 43', (words("39&0xffffff=0x417c62"),)),
        ("--string a1- --icase --from 40 --to 43", (words("39&0xdfffff=0x41312d"),)),
        (
            "! --string ab --from 40 --to 43",
            (words("38&0xffff=0x6162", no=True), words("39&0xffff=0x6162", no=True)),
        ),
        ("--string GET --from 40 --to 42", (NEVER,)),
        ("! --string GET --from 40 --to 42", ()),
        (f"--string {'abcd' * 11} --from 40 --to 84", None),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: tuple[Test, ...] | None) -> None:
    tests = read_rule(f"-m string --algo bm {options}").tests
    if expected is None:
        assert [len(test.words) for test in tests if isinstance(test, WordTest)] == [10, 1]
    else:
        assert tests == expected


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("--string x --algo bm", "a text that may be in several places"),
        ("--string GET --from 40 --to 44 --algo kmp", "a text that may be in several places"),
        ("! --string GET --from 40 --to 59 --algo kmp", "a text that may be in several places"),
        ("--string x --from 1 --to 2 --algo fsm", "--algo fsm"),
        ('--hex-string "|e4|" --icase --from 1 --to 2 --algo bm', "--icase with bytes that are not ASCII,"),
        (f"! --string {'a' * 41} --from 1 --to 42 --algo bm", "a negated text of more than 40 bytes"),
    ],
)
def test_what_is_kept_as_written(read_rule: ReadRule, options: str, reason: str) -> None:
    assert reason in read_rule(f"-m string {options}").unknown[0].reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--algo bm", "string needs --string or --hex-string"),
        ("--string x", 'string needs the option "--algo"'),
        ('--string "" --algo bm', "a text with at least one byte"),
        (f"--string {'x' * 129} --algo bm", "a text of at most 128 bytes"),
        ("--string x --from 3 --to 2 --algo bm", "--from is after --to"),
        ("--string x --to 65536 --algo bm", '"65536" is not a number from 0 to 65535'),
        ('--hex-string "|4|" --algo bm', "bytes between two | are written as 0d 0a"),
        ('--hex-string "|4g|" --algo bm', "bytes between two | are written as 0d 0a"),
        ('--hex-string "|41" --algo bm', "bytes between two | are written as 0d 0a"),
        ('--hex-string "|41\\\\|" --algo bm', "a backslash between two |"),
        ('--hex-string "a\\\\" --algo bm', "a backslash at the end of the text"),
    ],
)
def test_what_iptables_does_not_take(read_rule: ReadRule, options: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-m string {options}")
    assert message in str(caught.value)


def test_nft_compares_the_bytes() -> None:
    rule = "-A INPUT -m string --algo bm --string GET --from 40 --to 43 -j DROP"
    text = f"*filter\n:INPUT ACCEPT [0:0]\n{rule}\nCOMMIT\n"
    output = emit(lower(read_ruleset(text.encode(), name="rules"), level=0)).text
    assert "@nh,312,32 & 0xffffff == 0x474554 drop" in output
