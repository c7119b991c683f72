"""Any helper, as a helper with a name or without it."""

from __future__ import annotations

import pytest

from translate.ir import Field, FieldTest, Interval, Name, Test
from translate.nft import emit
from translate.nft.legalise.anyhelper import with_names
from translate.passes import lower
from translate.read import read_ruleset


def text(rule: str, level: int = 0) -> str:
    rules = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {rule}\nCOMMIT\n"
    return emit(lower(read_ruleset(rules.encode(), name="rules"), level=level)).text


@pytest.mark.parametrize("level", [0, 1, 2])
def test_any_helper_is_two_rules(level: int) -> None:
    translated = text('-m helper --helper "" -j DROP', level)
    assert 'ct helper "ftp"' in translated
    assert 'ct helper != "ftp"' in translated


@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_helper_is_neither_of_two(level: int) -> None:
    translated = text('-m helper ! --helper "" -j DROP', level)
    assert translated.index('ct helper "ftp" return') < translated.index('ct helper != "ftp" return')


def test_other_tests_stay() -> None:
    tests: tuple[Test, ...] = (
        FieldTest(field=Field.CT_HELPER, values=(Name("sip"),)),
        FieldTest(field=Field.SPORT, values=(Interval(1, 2),)),
    )
    assert with_names(tests) == tests
