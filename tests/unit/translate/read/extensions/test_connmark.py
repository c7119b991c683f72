from __future__ import annotations

import pytest

from translate.errors import ParseError
from translate.ir import Action, Field, FieldTest, Interval, RestoreMark, Rule, SaveMark, SetConnmark
from translate.read import read_ruleset
from translate.write import write_save

ALL = 0xFFFFFFFF


def read(options: str) -> Rule:
    text = f"*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD {options}\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules")
    assert write_save(ruleset) == text
    return ruleset.tables[0].chains[0].rules[0]


@pytest.mark.parametrize(
    ("options", "action"),
    [
        ("--set-mark 0x1/0x2", SetConnmark(1, 3)),
        ("--set-xmark 0x1/0x2", SetConnmark(1, 2)),
        ("--and-mark 0xff", SetConnmark(0, 0xFFFFFF00)),
        ("--or-mark 0x8", SetConnmark(8, 8)),
        ("--xor-mark 0x8", SetConnmark(8, 0)),
        ("--save-mark", SaveMark(ALL, ALL)),
        ("--save-mark --mask 0xff", SaveMark(0xFF, 0xFF)),
        ("--save-mark --nfmask 0xff --ctmask 0xf", SaveMark(0xFF, 0xF)),
        ("--restore-mark --ctmask 0xf", RestoreMark(ALL, 0xF)),
        ("--restore-mark --nfmask 0x80 --ctmask 0x80", RestoreMark(0x80, 0x80)),
        ("--set-mark 0x80000005 --left-shift-mark 8", SetConnmark(0x500, ALL)),
        ("--set-xmark 0x5/0xffffffff --right-shift-mark 2", SetConnmark(1, ALL)),
        ("--set-xmark 0x5/0xff --left-shift-mark 8", SetConnmark(5, 0xFF, 8)),
        ("--save-mark --right-shift-mark 31", SaveMark(ALL, ALL, -31)),
        ("--restore-mark --nfmask 0xf0 --ctmask 0xf --left-shift-mark 4", RestoreMark(0xF0, 0xF, 4)),
    ],
)
def test_target(options: str, action: Action) -> None:
    assert read(f"-j CONNMARK {options}").actions == (action,)


def test_match() -> None:
    value = (Interval.point(0x80),)
    assert read("-m connmark --mark 0x80/0x80").tests == (
        FieldTest(field=Field.CT_MARK, values=value, mask=0x80),
    )
    assert read("-m connmark ! --mark 0x80").tests == (
        FieldTest(field=Field.CT_MARK, values=value, negated=True),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-j CONNMARK", "CONNMARK needs one of its options"),
        ("-j CONNMARK --mask 1", "CONNMARK needs one of its options"),
        ("-j CONNMARK --save-mark --restore-mark", 'does not take "--restore-mark" as well'),
        ("-j CONNMARK --save-mark --mask 1 --ctmask 1", '"--mask" and "--ctmask" exclude each other'),
        ("-j CONNMARK --left-shift-mark 1", "CONNMARK needs one of its options"),
        ("-j CONNMARK --save-mark --left-shift-mark 32", "32"),
        ("-m connmark", 'connmark needs the option "--mark"'),
    ],
)
def test_wrong(options: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        read(options)
