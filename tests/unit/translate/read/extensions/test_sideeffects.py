"""Targets that leave the packet as it is: their meaning, their statements, and who refuses them."""

from __future__ import annotations

import pytest

import translate.bpf
import translate.nft
from harness.corpus.formats.ruletext import action_text
from translate.errors import ParseError, UnsupportedError
from translate.ir import Action, Audit, Classify, Family, FillChecksum, Ruleset, Trace
from translate.passes import lower
from translate.read import read_ruleset


def ruleset(target: str, table: str = "mangle", chain: str = "OUTPUT") -> Ruleset:
    text = f"*{table}\n:{chain} ACCEPT [0:0]\n-A {chain} -j {target}\nCOMMIT\n"
    return read_ruleset(text.encode(), name="rules", family=Family.IP)


def action(target: str, table: str = "mangle") -> Action:
    (one,) = ruleset(target, table).tables[0].chains[0].rules[0].actions
    return one


@pytest.mark.parametrize(
    ("target", "table", "meaning", "statement", "sentence"),
    [
        ("AUDIT --type Drop", "filter", Audit(), "log level audit", "writes an audit record"),
        ("TRACE", "raw", Trace(), "meta nftrace set 1", "traces it from this rule on"),
        (
            "CLASSIFY --set-class 1:2a",
            "mangle",
            Classify(0x1002A),
            "meta priority set 0001:002a",
            "puts it into class 1:2a of its queue",
        ),
        (
            "CLASSIFY --set-class 0xffff:0",
            "mangle",
            Classify(0xFFFF0000),
            "meta priority set ffff:0000",
            "puts it into class ffff:0 of its queue",
        ),
    ],
)
def test_what_nftables_says_as_well(
    target: str, table: str, meaning: Action, statement: str, sentence: str
) -> None:
    assert action(target, table) == meaning
    assert action_text(meaning, Family.IP) == sentence
    text = translate.nft.emit(lower(ruleset(target, table), level=2)).text
    assert f"\t\tcounter {statement} " in text or f"\t\t{statement} " in text


def test_a_checksum_is_filled_in_by_x_tables_alone_which_a_note_says() -> None:
    assert action("CHECKSUM --checksum-fill") == FillChecksum()
    assert "left to the network card" in action_text(FillChecksum(), Family.IP)
    program = lower(ruleset("CHECKSUM --checksum-fill"), level=2)
    notes = (*translate.nft.emit(program).notes, *translate.bpf.emit(program).notes)
    assert [note.feature for note in notes] == ["checksum"] * 2
    for note in notes:
        assert "compute" in note.text
        assert note.origin.line == 3
    assert "tc's action csum" in notes[0].text


def test_a_rule_for_checksums_leaves_the_others_as_they_are() -> None:
    rules = ruleset("CHECKSUM --checksum-fill\n-A OUTPUT -p udp -j MARK --set-mark 1")
    text = translate.nft.emit(lower(rules, level=2)).text
    assert "meta l4proto udp meta mark set 0x1" in text.replace("counter ", "")


def test_a_target_that_nobody_else_has_is_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedError, match=r"is not modelled: .*no ULOG since 3\.17"):
        lower(ruleset("ULOG --ulog-nlgroup 3"), level=2)


def test_the_tc_program_says_what_it_does_not_report() -> None:
    notes = [
        note.text
        for target, table in (("AUDIT --type accept", "filter"), ("TRACE", "raw"), ("LOG", "filter"))
        for note in translate.bpf.emit(lower(ruleset(target, table), level=2)).notes
    ]
    assert notes == [
        "the tc program does not write audit records",
        "the tc program does not trace",
        "the tc program does not log",
    ]
    output = translate.bpf.emit(lower(ruleset("CLASSIFY --set-class 1:1"), level=2))
    assert "skb->priority = 0x10001;" in output.chains
    assert output.notes == ()


@pytest.mark.parametrize(
    ("target", "table", "chain", "message"),
    [
        ("AUDIT", "filter", "OUTPUT", 'AUDIT needs the option "--type"'),
        ("AUDIT --type log", "filter", "OUTPUT", 'unknown type "log"'),
        ("CLASSIFY --set-class 1", "mangle", "OUTPUT", '"1" is not MAJOR:MINOR'),
        ("CLASSIFY --set-class 1:10000", "mangle", "OUTPUT", "both numbers of a class are at most ffff"),
        ("CLASSIFY --set-class 1:1", "mangle", "PREROUTING", "not valid in PREROUTING"),
        ("CHECKSUM", "mangle", "OUTPUT", 'CHECKSUM needs the option "--checksum-fill"'),
        ("CHECKSUM --checksum-fill", "filter", "OUTPUT", "only in mangle"),
        ("TRACE", "mangle", "OUTPUT", "only in raw"),
    ],
)
def test_what_iptables_does_not_take(target: str, table: str, chain: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        ruleset(target, table, chain)
    assert message in str(caught.value)
