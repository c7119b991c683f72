"""``-j TCPMSS`` and ``-j TCPOPTSTRIP``: where they may stand, and nftables' statements for them."""

from __future__ import annotations

import pytest

import translate.bpf
import translate.nft
from harness.corpus.formats.ruletext import action_text
from translate.errors import ParseError
from translate.ir import Family, LimitMss, Ruleset, StripOptions
from translate.passes import lower
from translate.read import read_ruleset

SYN = "-p tcp -m tcp --tcp-flags SYN,RST SYN"


def ruleset(rule: str, chain: str = "FORWARD") -> Ruleset:
    text = f"*mangle\n:{chain} ACCEPT [0:0]\n-A {chain} {rule}\nCOMMIT\n"
    return read_ruleset(text.encode(), name="rules", family=Family.IP)


@pytest.mark.parametrize(
    ("option", "meaning", "statement", "sentence"),
    [
        (
            "--clamp-mss-to-pmtu",
            LimitMss(None),
            'oifname != "lo" tcp option maxseg size set rt mtu',
            "lowers the MSS announced in a SYN to the value that fits the path MTU",
        ),
        (
            "--set-mss 0x400",
            LimitMss(1024),
            "tcp option maxseg size set 1024",
            "lowers the MSS announced in a SYN to 1024",
        ),
    ],
)
def test_a_size(option: str, meaning: LimitMss, statement: str, sentence: str) -> None:
    rules = ruleset(f"{SYN} -j TCPMSS {option}")
    assert rules.tables[0].chains[0].rules[0].actions == (meaning,)
    assert action_text(meaning, Family.IP) == sentence
    translation = translate.nft.emit(lower(rules, level=2))
    assert f" {statement} comment" in translation.text
    (note,) = translation.notes
    assert (note.feature, note.origin.line) == ("tcpmss", 3)
    call = "clamp_mss(skb, p)" if meaning.mss is None else f"limit_mss(skb, p, {meaning.mss:#x})"
    assert call in translate.bpf.emit(lower(rules, level=2)).chains


@pytest.mark.parametrize(
    ("rule", "chain", "message"),
    [
        (f"{SYN} -j TCPMSS", "FORWARD", "TCPMSS needs one of its options"),
        (f"{SYN} -j TCPMSS --set-mss 1 --clamp-mss-to-pmtu", "FORWARD", "TCPMSS needs one of its options"),
        (f"{SYN} -j TCPMSS --set-mss 65536", "FORWARD", '"65536" is not a number'),
        ("-j TCPMSS --set-mss 5", "FORWARD", 'TCPMSS needs "-p tcp"'),
        ("-p tcp -j TCPMSS --set-mss 5", "FORWARD", "needs a test in the same rule that the segment has SYN"),
        ("-p tcp ! --syn -j TCPMSS --set-mss 5", "FORWARD", "needs a test in the same rule"),
        ("-p tcp --tcp-flags SYN,ACK ACK -j TCPMSS --set-mss 5", "FORWARD", "needs a test in the same rule"),
        (
            f"{SYN} -j TCPMSS --clamp-mss-to-pmtu",
            "PREROUTING",
            "is not valid in PREROUTING",
        ),
        (f"{SYN} -j TCPMSS --clamp-mss-to-pmtu", "INPUT", "is not valid in INPUT"),
    ],
)
def test_what_iptables_does_not_take(rule: str, chain: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        ruleset(rule, chain)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("option", "meaning", "statement"),
    [
        (
            "--strip-options 253,mss,5",
            (2, 5, 253),
            "reset tcp option maxseg reset tcp option sack reset tcp option 253",
        ),
        ("", (), ""),
    ],
)
def test_options_are_stripped(option: str, meaning: tuple[int, ...], statement: str) -> None:
    rules = ruleset(f"-p tcp -j TCPOPTSTRIP {option}")
    assert rules.tables[0].chains[0].rules[0].actions == (StripOptions(meaning),)
    text = translate.nft.emit(lower(rules, level=2)).text
    assert f"meta l4proto tcp {statement}".rstrip() + " comment" in text


def test_stripped_options_for_operators() -> None:
    assert action_text(StripOptions((2, 5)), Family.IP) == "removes the TCP options 2, 5"


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("-j TCPOPTSTRIP", 'TCPOPTSTRIP needs "-p tcp"'),
        ("-p tcp -j TCPOPTSTRIP --strip-options 1,2", '"1" is not a TCP option that can be stripped'),
        ("-p tcp -j TCPOPTSTRIP --strip-options 2,mss", 'option "mss" is named twice'),
        ("-p tcp -j TCPOPTSTRIP --strip-options 256", '"256" is not a TCP option'),
    ],
)
def test_what_can_not_be_stripped(rule: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        ruleset(rule)
    assert message in str(caught.value)
