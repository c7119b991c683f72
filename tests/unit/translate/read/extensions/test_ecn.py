"""``-m ecn`` and ``-m tcpmss``: their meaning in each spelling, and their faults."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import translate.nft
from tests.unit.translate.read.helpers.fieldtests import field_test
from translate.errors import Diagnostic
from translate.ir import AnyOf, Family, Field, Hidden, Rule, SetTcpFlags, SetTos, Test
from translate.passes import lower
from translate.read import read_ruleset
from translate.read.listing.printed import parse_printed

ReadRule = Callable[..., Rule]
ReadFault = Callable[..., Diagnostic]


ECE = field_test(Field.TCP_FLAGS, 0x40, mask=0x40)
NO_CWR = field_test(Field.TCP_FLAGS, 0x80, mask=0x80, no=True)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("-m ecn --ecn-tcp-ece", (ECE,)),
        ("-m ecn ! --ecn-tcp-cwr --ecn-tcp-ece", (ECE, NO_CWR)),
        ("-m ecn --ecn-ip-ect 0x2", (field_test(Field.TOS, 2, mask=3),)),
        ("-m ecn ! --ecn-ip-ect 0 ! --ecn-tcp-cwr", (NO_CWR, field_test(Field.TOS, 0, mask=3, no=True))),
        ("-m tcpmss --mss 1460", (field_test(Field.TCP_MSS, 1460),)),
        ("-m tcpmss --mss :0x200", (field_test(Field.TCP_MSS, 0, 512),)),
        ("-m tcpmss ! --mss 536:", (AnyOf(tests=(field_test(Field.TCP_MSS, 536, 65535),), negated=True),)),
    ],
)
@pytest.mark.parametrize("family", list(Family))
def test_meaning(read_rule: ReadRule, family: Family, rule: str, expected: tuple[Test, ...]) -> None:
    assert read_rule(f"-p tcp {rule}", family=family).tests[1:] == expected


def test_the_tos_needs_no_protocol(read_rule: ReadRule) -> None:
    assert read_rule("-m ecn --ecn-ip-ect 3").tests == (field_test(Field.TOS, 3, mask=3),)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("-m ecn", "ecn needs one of its options"),
        ("-m ecn --ecn-tcp-ece", '--ecn-tcp-ece needs "-p tcp"'),
        ("-p udp -m ecn --ecn-tcp-cwr", '--ecn-tcp-cwr needs "-p tcp"'),
        ("-m ecn --ecn-ip-ect 4", '"4" is not a number from 0 to 3'),
        ("-p tcp -m tcpmss", 'tcpmss needs the option "--mss"'),
        ("-m tcpmss --mss 5", 'tcpmss needs "-p tcp"'),
        ("-p tcp -m tcpmss --mss 9:8", 'range "9:8" ends before it begins'),
        ("-p tcp -m tcpmss --mss 65536", '"65536" is not a number from 0 to 65535'),
    ],
)
def test_faults(read_fault: ReadFault, rule: str, message: str) -> None:
    assert message in read_fault(rule).message


def test_a_segment_without_the_option_passes_the_negated_test_in_nftables() -> None:
    text = "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -m tcpmss ! --mss 5:9 -j DROP\nCOMMIT\n"
    rules = read_ruleset(text.encode(), name="rules", family=Family.IP)
    written = translate.nft.emit(lower(rules, level=2)).text
    # an own chain, because "maxseg size != 5-9" fails without the option
    assert "tcp option maxseg size 5-9 return" in written
    assert "!= 5-9" not in written


@pytest.mark.parametrize(("words", "value"), [("0", 0), ("0x2", 2), ("3", 3)])
def test_the_target_sets_two_bits(read_rule: ReadRule, words: str, value: int) -> None:
    assert read_rule(f"-j ECN --ecn-ip-ect {words}", table="mangle").actions == (SetTos(value, 3),)


@pytest.mark.parametrize(
    ("options", "value", "mask"),
    [
        ("--ecn-tcp-remove", 0, 0xC0),
        ("--ecn-tcp-cwr 1", 0x80, 0x80),
        ("--ecn-tcp-ece 0", 0, 0x40),
        ("--ecn-tcp-cwr 0x0 --ecn-tcp-ece 1", 0x40, 0xC0),
    ],
)
def test_the_target_sets_bits_of_a_segment(read_rule: ReadRule, options: str, value: int, mask: int) -> None:
    rule = read_rule(f"-p tcp -j ECN {options}", table="mangle")
    assert rule.actions == (SetTcpFlags(value, mask),)


def test_a_change_of_both_headers_is_kept_as_written(read_rule: ReadRule) -> None:
    rule = read_rule("-p tcp -j ECN --ecn-tcp-ece 0 --ecn-ip-ect 1", table="mangle")
    assert "--ecn-ip-ect together with another option" in rule.unknown[0].reason
    assert rule.unknown[0].hides is Hidden.EFFECT


def test_nftables_has_a_rule_for_each_value_of_the_flags() -> None:
    text = "*mangle\n:FORWARD ACCEPT [0:0]\n-A FORWARD -p tcp -j ECN --ecn-tcp-cwr 1\nCOMMIT\n"
    output = translate.nft.emit(lower(read_ruleset(text.encode(), name="rules", family=Family.IP), level=2))
    assert output.text.count(" tcp flags set ") == 128
    assert "tcp flags == 0x52 tcp flags set 0xd2 return" in output.text
    assert [note.feature for note in output.notes] == ["ecn"]


@pytest.mark.parametrize(
    ("rule", "family", "table", "message"),
    [
        ("-j ECN", Family.IP, "mangle", "ECN needs one of its options"),
        ("-j ECN --ecn-tcp-remove", Family.IP, "mangle", 'needs "-p tcp"'),
        ("-p tcp -j ECN --ecn-tcp-cwr 2", Family.IP, "mangle", '"2" is not a number from 0 to 1'),
        (
            "-p tcp -j ECN --ecn-tcp-ece 1 --ecn-tcp-remove",
            Family.IP,
            "mangle",
            "sets the same bits as another option",
        ),
        ("-j ECN --ecn-ip-ect 4", Family.IP, "mangle", '"4" is not a number from 0 to 3'),
        ("-j ECN --ecn-ip-ect 1", Family.IP, "filter", "mangle"),
        ("-j ECN --ecn-ip-ect 1", Family.IP6, "mangle", '"ECN" does not belong to IPv6'),
    ],
)
def test_faults_of_the_target(
    read_fault: ReadFault, rule: str, family: Family, table: str, message: str
) -> None:
    assert message in str(read_fault(rule, family=family, table=table))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ECN ECT codepoint=2", "--ecn-ip-ect 2"),
        ("ECN TCP remove", "--ecn-tcp-remove"),
        ("ECN ECE=0 CWR=1 ECT codepoint=1", "--ecn-tcp-ece 0 --ecn-tcp-cwr 1 --ecn-ip-ect 1"),
    ],
)
def test_words_of_the_target_in_a_listing(text: str, words: str) -> None:
    assert parse_printed(text, "ECN").options == words.split()
