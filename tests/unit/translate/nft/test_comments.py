from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.translate.helpers.rules import program
from translate.ir import Origin
from translate.nft import emit
from translate.nft.comments import MAX_COMMENT, comment, own_comment, place_comment
from translate.read import read_ruleset


@given(st.text(st.characters(), max_size=300), st.sampled_from(["", ", line 12345"]))
def test_a_comment_fits_and_has_no_quote_inside(text: str, behind: str) -> None:
    made = comment(text, behind)
    assert made[0] == made[-1] == '"'
    assert made.endswith(f'{behind}"')
    assert '"' not in made[1:-1]
    assert made[1:-1].isprintable()
    assert len(made[1:-1].encode()) <= MAX_COMMENT


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("-A a -m comment --comment default/kubernetes:https -j b", "default/kubernetes:https"),
        ('-A a -m comment --comment "ns/svc:http cluster IP" -j b', "ns/svc:http cluster IP"),
        (r'-A a -m comment --comment "a \"b\" \\ c" -j b', r'a "b" \ c'),
        ('-A a -m comment --comment "" -j b', ""),
        ("-A a -m comment --comment one -m comment --comment two -j b", "one; two"),
        (
            "KUBE-SVC  tcp  --  0.0.0.0/0  10.0.0.1  /* ns/svc:http cluster IP */ tcp dpt:80",
            "ns/svc:http cluster IP",
        ),
        ("-A a -j b", ""),
        ("-A a -m comment --comment ", ""),
    ],
)
def test_the_own_comment_of_a_line(text: str, own: str) -> None:
    assert own_comment(text) == own


@given(
    st.text(
        st.characters(codec="utf-8", exclude_categories=("Cc", "Zs", "Zl", "Zp", "Cs")),
        min_size=1,
        max_size=80,
    )
)
def test_it_is_the_comment_that_the_reader_finds(said: str) -> None:
    quoted = said.replace("\\", "\\\\").replace('"', '\\"')
    line = f'-A INPUT -m comment --comment "{quoted}" -j DROP'
    (table,) = read_ruleset(f"*filter\n:INPUT ACCEPT [0:0]\n{line}\nCOMMIT\n".encode(), name="rules").tables
    (rule,) = table.chains[0].rules
    assert rule.comment == own_comment(rule.origin.text) == said


def test_the_own_comment_comes_first_and_is_cut_for_the_line() -> None:
    line = '-A a -m comment --comment "ns/svc:http" -j b'
    assert place_comment(Origin("rules", 12, 1, line)) == '"ns/svc:http, line 12"'
    assert place_comment(Origin("rules", 12, 1, "-A a -j b")) == '"line 12"'
    assert place_comment(Origin("rules")) == ""
    assert place_comment(Origin("rules", 12, 1, line).of_several()) == '"rules like line 12"'
    long = place_comment(Origin("rules", 12, 1, line.replace("ns/", "é" * 200)))
    assert long.endswith('…, line 12"')
    assert len(long.encode()) - 2 in (MAX_COMMENT - 1, MAX_COMMENT)


def test_rules_and_elements_say_what_they_come_from() -> None:
    rules = [f"-A INPUT -s 10.0.0.{n}/32 -m comment --comment from-{n} -j DROP" for n in (1, 2)]
    alone = "-A INPUT -p udp -m comment --comment alone -j ACCEPT"
    text = emit(program("filter", *rules, alone, level=1)).text
    assert '10.0.0.1 comment "from-1, line 5",' in text
    assert '10.0.0.2 comment "from-2, line 6",' in text
    assert 'meta l4proto udp accept comment "alone, line 7"' in text
