"""``-m tcp --tcp-option`` and ``-m dccp`` in the reader and in nft's spelling."""

from __future__ import annotations

import pytest

from harness.corpus.formats import ruletext
from tests.unit.translate.helpers.rules import nft, program
from tests.unit.translate.read.conftest import ReadFault, ReadRule
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.bpf import emit
from translate.errors import ParseError, UnsupportedError
from translate.ir import Family, Field, FieldTest, Interval
from translate.nft import emit as emit_nft
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.listing.printed import parse_printed


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ("--tcp-option 8", "meta l4proto tcp tcp option 8 exists drop"),
        ("--tcp-option 0x2 --dport 80", "tcp dport 80 tcp option 2 exists drop"),
        # of a later fragment, "missing" alone would hold
        ("! --tcp-option 255", "meta l4proto tcp tcp sport >= 0 tcp option 255 missing drop"),
    ],
)
@pytest.mark.parametrize("level", [0, 2])
def test_nftables(options: str, text: str, level: int) -> None:
    chains = nft("filter", f"-A FORWARD -p tcp -m tcp {options} -j DROP", level=level)
    assert chains["filter_FORWARD"] == [text]


def test_tc_ebpf() -> None:
    output = emit(program("filter", "-A FORWARD -p tcp -m tcp --tcp-option 8 -j DROP"))
    assert "p->has_options && ((p->options[0] & 0x100ULL) == 0x100ULL)" in output.chains
    assert "#define READS_TCP_OPTIONS 1" in output.source


@pytest.mark.parametrize("number", ["0", "256", "mss"])
def test_wrong(number: str) -> None:
    with pytest.raises(ParseError, match=number):
        program("filter", f"-A FORWARD -p tcp -m tcp --tcp-option {number}")


PROTOCOL = field_test(Field.L4PROTO, 33, 33)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", [field_test(Field.SPORT, 0, 65535)]),
        ("--sport 53", [field_test(Field.SPORT, 53, 53)]),
        ("! --destination-port 1:5", [field_test(Field.DPORT, 1, 5, no=True)]),
        (
            "--dport :5 --source-port ssh",
            [field_test(Field.SPORT, 22, 22), field_test(Field.DPORT, 0, 5)],
        ),
        ("--dport 5:1", [field_test(Field.DPORT, 0, 65535, no=True)]),
    ],
)
def test_meaning(read_rule: ReadRule, options: str, expected: list[FieldTest]) -> None:
    assert read_rule(f"-p dccp -m dccp {options}".rstrip()).tests == (PROTOCOL, *expected)


@pytest.mark.parametrize("no", [False, True])
def test_options_of_dccp(read_rule: ReadRule, read_fault: ReadFault, no: bool) -> None:
    words = f"-p dccp -m dccp{' !' if no else ''} --dccp-option 255"
    bit = 1 << 255
    test = FieldTest(field=Field.DCCP_OPTIONS, values=(Interval.point(bit),), mask=bit, negated=no)
    assert read_rule(words).tests[1:] == (test,)
    assert parse_printed(f"dccp 2,3 option={'!' if no else ''}255", None, Family.IP).matches == [
        *("-m", "dccp", "--dccp-types", "DATA,ACK", *(["!"] if no else []), "--dccp-option", "255")
    ]
    has = "it does not have" if no else "it has"
    assert ruletext.test_text(test, Family.IP) == f"{has} the option 255 of DCCP"
    assert "from 1 to 255" in read_fault("-p dccp -m dccp --dccp-option 0").message
    text = f"*filter\n:INPUT ACCEPT [0:0]\n-A INPUT {words} -j DROP\nCOMMIT\n".encode()
    lowered = lower(read_ruleset(text, name="rules"), level=2)
    assert "#define READS_DCCP_OPTIONS 1" in emit(lowered).source
    with pytest.raises(UnsupportedError, match="from 2 to 31 for single bytes"):
        emit_nft(lowered)


def test_types_of_dccp(read_rule: ReadRule, read_fault: ReadFault) -> None:
    tests = read_rule("-p dccp -m dccp ! --dccp-types request,SYNCACK,INVALID,DATA").tests
    values = (Interval(0, 0), Interval(2, 2), Interval(9, 15))
    assert tests[1:] == (FieldTest(field=Field.DCCP_TYPE, values=values, negated=True),)
    words = parse_printed("dccp dpt:5 ! 2,10,11,12,13,14,15", None, Family.IP).matches
    assert words == ["-m", "dccp", "--dport", "5", "!", "--dccp-types", "DATA,INVALID"]
    words = parse_printed("dccp REQUEST,INVALID", None, Family.IP).matches
    assert words == ["-m", "dccp", "--dccp-types", "REQUEST,INVALID"]
    assert '"5" is not a packet type of DCCP' in read_fault("-p dccp -m dccp --dccp-types DATA,5").message


@pytest.mark.parametrize("words", ["", "-p udp", "! -p dccp"])
def test_the_protocol_is_needed(read_fault: ReadFault, words: str) -> None:
    fault = read_fault(f"{words} -m dccp --dport 5".strip())
    assert 'dccp needs "-p dccp" in the same rule' in fault.message


def test_words_of_a_listing() -> None:
    words = parse_printed("dccp spt:22 dpts:!1:5", None).matches
    assert words == ["-m", "dccp", "--sport", "22", "!", "--dport", "1:5"]


@pytest.mark.parametrize("level", [0, 2])
def test_nft_reads_the_ports(level: int) -> None:
    rule = b"-A INPUT -p dccp -m dccp ! --sport 1:5 --dport 80 -j DROP"
    text = b"*filter\n:INPUT ACCEPT [0:0]\n" + rule + b"\nCOMMIT\n"
    output = emit_nft(lower(read_ruleset(text, name="rules"), level=level)).text
    assert "dccp sport != 1-5 dccp dport 80 drop" in output
