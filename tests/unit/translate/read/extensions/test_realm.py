from __future__ import annotations

import pytest

from tests.unit.translate.read.conftest import ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import ParseError
from translate.ir import Family, Field, FieldTest
from translate.read.listing.printed import parse_printed


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--realm 5", field_test(Field.REALM, 5)),
        ("! --realm 0x10/0xff", field_test(Field.REALM, 16, mask=255, no=True)),
        ("--realm 5/0xffffffff", field_test(Field.REALM, 5)),
        ("--realm cosmos", field_test(Field.REALM, 0)),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: FieldTest) -> None:
    assert read_rule(f"-m realm {options}").tests == (expected,)


def test_a_name_is_known_to_its_node(read_rule: ReadRule) -> None:
    assert '"lab", which only the node knows' in read_rule("-m realm --realm lab").unknown[0].reason


@pytest.mark.parametrize(
    ("options", "family", "message"),
    [
        ("", Family.IP, 'realm needs the option "--realm"'),
        ("--realm 5/", Family.IP, "is not a number"),
        ("--realm 5", Family.IP6, "does not belong to IPv6"),
    ],
)
def test_faults(read_rule: ReadRule, options: str, family: Family, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        read_rule(f"-m realm {options}", family=family)
    assert message in str(caught.value)


def test_words_of_a_listing() -> None:
    assert parse_printed("realm 0x5", None, Family.IP).matches == ["-m", "realm", "--realm", "0x5"]
    words = parse_printed("! realm 0x10/0xff", None, Family.IP).matches
    assert words == ["-m", "realm", "!", "--realm", "0x10/0xff"]
