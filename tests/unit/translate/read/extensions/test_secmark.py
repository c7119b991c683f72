"""``-j SECMARK`` and ``-j CONNSECMARK``: labels of packets and connections for a security module."""

from __future__ import annotations

import pytest

import translate.bpf
from tests.unit.translate.helpers.rules import nft, program
from translate.errors import ParseError, UnsupportedError
from translate.ir import ConnSecmark, Secmark, SideEffect
from translate.nft import emit
from translate.read import read_ruleset
from translate.write import write_save

SAVE = "ct secmark & 0xffff == 0 ct secmark & 0xffff0000 == 0 ct secmark set meta secmark"
RESTORE = "meta secmark & 0xffff == 0 meta secmark & 0xffff0000 == 0 meta secmark set ct secmark"


@pytest.mark.parametrize(
    ("target", "action", "statement"),
    [
        ("SECMARK --selctx a:b_t:s0", Secmark("a:b_t:s0"), 'meta secmark set "secmark_a_b_t_s0"'),
        ("CONNSECMARK --save", ConnSecmark(restore=False), SAVE),
        ("CONNSECMARK --restore", ConnSecmark(restore=True), RESTORE),
    ],
)
def test_targets(target: str, action: SideEffect, statement: str) -> None:
    text = f"*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT -j {target}\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules")
    assert write_save(ruleset) == text
    (rule,) = ruleset.tables[0].chains[0].rules
    assert rule.actions == (action,)
    assert nft("mangle", f"-A INPUT -j {target}")["mangle_INPUT"] == [statement]
    with pytest.raises(UnsupportedError, match="the label of a packet"):
        translate.bpf.emit(program("mangle", f"-A INPUT -j {target}"))


def test_a_label_is_one_object() -> None:
    rules = [f"-A INPUT -p {p} -j SECMARK --selctx {label}" for p, label in (("tcp", "a:b"), ("udp", "a:b"))]
    text = emit(program("mangle", *rules, "-A INPUT -j SECMARK --selctx a_b")).text
    assert text.count("secmark secmark_") == 2
    assert 'secmark secmark_a_b {\n\t\t"a:b"' in text
    assert 'secmark secmark_a_b_2 {\n\t\t"a_b"' in text


@pytest.mark.parametrize("label", ['a"b', "a*", "a\tb"])
def test_a_label_that_nft_cannot_quote(label: str) -> None:
    written = label.replace('"', '\\"')
    with pytest.raises(UnsupportedError) as caught:
        nft("mangle", f'-A INPUT -j SECMARK --selctx "{written}"')
    assert [refusal.feature for refusal in caught.value.refusals] == ["secmark-label"]


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        ("mangle", "SECMARK", 'needs the option "--selctx"'),
        ("mangle", f"SECMARK --selctx {'a' * 256}", "has 1 to 255 bytes"),
        ("mangle", "CONNSECMARK", "needs either --save or --restore"),
        ("mangle", "CONNSECMARK --save --restore", "needs either --save or --restore"),
        ("filter", "SECMARK --selctx a", "mangle"),
    ],
)
def test_what_the_kernel_does_not_take_is_refused(table: str, target: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        program(table, f"-A INPUT -j {target}")
