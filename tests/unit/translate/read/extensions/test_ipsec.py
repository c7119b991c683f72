"""``-m esp``, ``-m ah`` and ``-m ipcomp``: their meaning, and their faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import translate.bpf
import translate.nft
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import Diagnostic
from translate.ir import Family, Field, FieldTest, Program, Rule
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


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", (field_test(Field.AH_SPI, 0, MOST),)),
        ("--ahspi 5", (field_test(Field.AH_SPI, 5, 5),)),
        ("--ahlen 24", (field_test(Field.AH_SPI, 0, MOST), field_test(Field.AH_LENGTH, 4, 4))),
        ("! --ahlen 0x18", (field_test(Field.AH_SPI, 0, MOST), field_test(Field.AH_LENGTH, 4, 4, no=True))),
        # no header has this length
        ("--ahlen 23", (field_test(Field.AH_SPI, 0, MOST), field_test(Field.AH_LENGTH, 0, 255, no=True))),
        ("! --ahlen 4", (field_test(Field.AH_SPI, 0, MOST), field_test(Field.AH_LENGTH, 0, 255))),
        # any length, as in ah_mt6
        ("! --ahlen 0", (field_test(Field.AH_SPI, 0, MOST),)),
        ("--ahres --ahspi 5", (field_test(Field.AH_SPI, 5, 5), field_test(Field.AH_RESERVED, 0, 0))),
    ],
)
def test_ah_of_ipv6(read_rule: ReadRule, options: str, expected: tuple[FieldTest, ...]) -> None:
    assert read_rule(f"-m ah {options}", family=Family.IP6).tests == expected


@pytest.mark.parametrize("option", ["--ahlen 24", "--ahres"])
def test_only_ah_of_ipv6_reads_more_than_the_index(read_fault: ReadFault, option: str) -> None:
    assert f"{option.split()[0]} is an option of IPv6" in read_fault(f"-p ah -m ah {option}").message


def six(*rules: str, level: int = 2) -> Program:
    appended = "\n".join(f"-A INPUT {rule}" for rule in rules)
    text = f"*filter\n:INPUT ACCEPT [0:0]\n{appended}\nCOMMIT\n"
    return lower(read_ruleset(text.encode(), name="rules", family=Family.IP6), level=level)


def test_ah_of_ipv6_is_translated() -> None:
    program = six("-m ah --ahspi 5 ! --ahlen 24 --ahres -j DROP")
    assert "ah spi 5 ah hdrlength != 4 ah reserved 0 drop" in translate.nft.emit(program).text
    chains = translate.bpf.emit(program).chains
    assert "p->has_ah && p->ah_spi == 0x5 && p->has_ah && !(p->ah_length == 0x4)" in chains
