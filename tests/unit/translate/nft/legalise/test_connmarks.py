from __future__ import annotations

import itertools

import pytest

from tests.unit.translate.helpers.rules import nft
from translate.ir import Accept, Family, Field, RestoreMark, SaveMark, SetConnmark
from translate.nft.legalise.connmarks import connmark_rules, needs_separate_rules
from translate.nft.printer.matches import field_match
from translate.nft.printer.statements import statement

ALL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--set-mark 7", "ct mark set 0x7"),
        ("--set-xmark 0x80/0x80", "ct mark set ct mark | 0x80"),
        ("--set-xmark 0x80/0xff", "ct mark set ct mark & 0xffffff00 ^ 0x80"),
        ("--xor-mark 3", "ct mark set ct mark ^ 0x3"),
        ("--save-mark", "ct mark set meta mark"),
        ("--save-mark --nfmask 0xff --ctmask 0xffffffff", "ct mark set meta mark & 0x000000ff"),
        ("--restore-mark", "meta mark set ct mark"),
        ("--restore-mark --nfmask 0xffffffff --ctmask 0x80", "meta mark set ct mark & 0x00000080"),
    ],
)
def test_one_statement(options: str, text: str) -> None:
    chains = nft("mangle", f"-A FORWARD -j CONNMARK {options}")
    assert chains["mangle_FORWARD"] == [text]


def test_bits_are_copied_one_by_one() -> None:
    chains = nft("mangle", "-A FORWARD -i eth0 -j CONNMARK --restore-mark --mask 0x81")
    assert chains["mangle_FORWARD"] == ['iifname "eth0" jump mangle_FORWARD_2']
    assert chains["mangle_FORWARD_2"] == [
        "ct state established,related,new meta mark set meta mark & 0xffffff7e",
        "ct mark & 0x1 == 0x1 meta mark set meta mark ^ 0x1",
        "ct mark & 0x80 == 0x80 meta mark set meta mark ^ 0x80",
    ]


def test_what_may_end_a_rule_does_not_keep_a_packet_from_its_verdict() -> None:
    rules = (
        "-A PREROUTING -p udp -g mark",
        "-A mark -j CONNMARK --set-xmark 0x1/0x1",
        "-A mark -j ACCEPT",
    )
    chains = nft("mangle", *rules, level=1)
    (rule,) = chains["mangle_PREROUTING"]
    subchain = rule.split()[-1]
    assert chains[subchain] == ["ct mark set ct mark | 0x1", "accept"]


MARKS = (0, 1, 0x80, 0xFF00FF00, ALL)
CONNMARKS = (0, 2, 0x81, 0x00FFFF00, ALL)
NFMASKS = (0, 1, 0x80, 0x8001, ALL)
CTMASKS = (0, 3, 0x80, 0x18000, ALL)


def test_the_rules_compute_what_xt_connmark_does() -> None:
    for given in itertools.product(MARKS, CONNMARKS, NFMASKS, CTMASKS):
        mark, connmark, nfmask, ctmask = given
        saved = run(SaveMark(nfmask, ctmask), mark, connmark)
        assert saved == (mark, connmark & ~ctmask & ALL ^ mark & nfmask), given
        restored = run(RestoreMark(nfmask, ctmask), mark, connmark)
        assert restored == (mark & ~nfmask & ALL ^ connmark & ctmask, connmark), given
        written = run(SetConnmark(nfmask, ctmask), mark, connmark)
        assert written == (mark, connmark & ~ctmask & ALL ^ nfmask), given


@pytest.mark.parametrize("shift", [1, 8, 31, -1, -9, -31])
def test_shifted_marks(shift: int) -> None:
    def shifted(value: int) -> int:
        return value << shift & ALL if shift > 0 else value >> -shift

    for given in itertools.product(MARKS, CONNMARKS, NFMASKS, CTMASKS):
        mark, connmark, nfmask, ctmask = given
        saved = run(SaveMark(nfmask, ctmask, shift), mark, connmark)
        assert saved == (mark, connmark & ~ctmask & ALL ^ shifted(mark & nfmask)), given
        restored = run(RestoreMark(nfmask, ctmask, shift), mark, connmark)
        assert restored == (mark & ~nfmask & ALL ^ shifted(connmark & ctmask), connmark), given
    for mark, connmark in itertools.product(MARKS, CONNMARKS):
        written = run(SetConnmark(mark, 0xFF, shift), 0, connmark)
        assert written == (0, shifted(connmark & ~0xFF & ALL ^ mark)), (mark, connmark)


def run(action: SetConnmark | SaveMark | RestoreMark, mark: int, connmark: int) -> tuple[int, int]:
    """Do what the rules say, read as nft reads them."""
    values = {"meta mark": mark, "ct mark": connmark}
    for tests, single in connmark_rules(action):
        if all(t.field is Field.CT_STATE or _holds(field_match(t, Family.IP), values) for t in tests):
            name, _, right = statement(single, Family.IP, {}).partition(" set ")
            values[name] = _value(right, values)
    return values["meta mark"], values["ct mark"]


def _holds(match: str, values: dict[str, int]) -> bool:
    left, _, right = match.partition(" == ")
    return _value(left, values) == int(right, 16)


def _value(text: str, values: dict[str, int]) -> int:
    for name, value in values.items():
        text = text.replace(name, str(value))
    return int(eval(text)) & ALL  # written by the code under test


def test_only_what_stands_last_may_end_its_rule() -> None:
    assert not needs_separate_rules((SetConnmark(1, 1),))
    assert needs_separate_rules((SetConnmark(1, 1), Accept()))
    assert needs_separate_rules((RestoreMark(1, 1),))
