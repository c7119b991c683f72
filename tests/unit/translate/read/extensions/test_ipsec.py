"""``-m esp``, ``-m ah`` and ``-m ipcomp``: their meaning, and their faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import translate.bpf
import translate.nft
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import Diagnostic, UnsupportedError
from translate.ir import Family, Field, FieldTest, Rule
from translate.passes import lower
from translate.read import read_ruleset

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]
MOST = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("-p esp -m esp", field_test(Field.ESP_SPI, 0, MOST)),
        ("-p esp -m esp --espspi 0x100", field_test(Field.ESP_SPI, 256, 256)),
        ("-p 50 -m esp ! --espspi :32", field_test(Field.ESP_SPI, 0, 32, no=True)),
        ("-p esp -m esp --espspi 7:5", field_test(Field.ESP_SPI, 0, MOST, no=True)),
        ("-p ah -m ah --ahspi 5:", field_test(Field.AH_SPI, 5, MOST)),
        ("-p 108 -m ipcomp --compres", field_test(Field.IPCOMP_CPI, 0, 0)),
        ("-p 108 -m ipcomp --ipcompspi 18 --compres", field_test(Field.IPCOMP_CPI, 18, 18)),
        # a CPI has 16 bits
        ("-p 108 -m ipcomp --ipcompspi 9:70000", field_test(Field.IPCOMP_CPI, 9, 65535)),
        ("-p 108 -m ipcomp --ipcompspi 70000", field_test(Field.IPCOMP_CPI, 0, 65535, no=True)),
        ("-p 108 -m ipcomp ! --ipcompspi 70000", field_test(Field.IPCOMP_CPI, 0, 65535)),
    ],
)
def test_meaning(read_rule: ReadRule, rule: str, expected: FieldTest) -> None:
    assert read_rule(rule).tests[1:] == (expected,)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("-m esp", 'esp needs "-p esp" in the same rule'),
        ("! -p esp -m esp --espspi 1", 'esp needs "-p esp"'),
        ("-p esp -m ah --ahspi 1", 'ah needs "-p ah"'),
        ("-p tcp -m ipcomp --ipcompspi 1", 'ipcomp needs "-p ipcomp"'),
        ("-p esp -m esp --espspi 4294967296", '"4294967296" is not a number from 0 to 4294967295'),
    ],
)
def test_faults(read_fault: ReadFault, rule: str, message: str) -> None:
    assert message in read_fault(rule).message


def test_ah_of_ipv6_is_an_extension_header_that_no_translation_reads(read_rule: ReadRule) -> None:
    assert read_rule("-m ah --ahspi 5", family=Family.IP6).tests == (field_test(Field.AH_SPI, 5, 5),)
    text = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -m ah --ahspi 5 -j DROP\nCOMMIT\n"
    program = lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=2)
    for emit in (translate.nft.emit, translate.bpf.emit):
        with pytest.raises(UnsupportedError, match="an extension header"):
            emit(program)
