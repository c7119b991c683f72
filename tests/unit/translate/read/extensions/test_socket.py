"""``-m socket --restore-skmark``: an effect of the match, before that of the target."""

from __future__ import annotations

import pytest

from translate.ir import Accept, Action, Family, RestoreSocketMark, Rule, SetMark
from translate.nft import emit
from translate.passes import lower
from translate.read import read_ruleset


def read(text: str) -> Rule:
    rules = f"*mangle\n:PREROUTING ACCEPT [0:0]\n-A PREROUTING {text}\nCOMMIT\n"
    (rule,) = read_ruleset(rules.encode(), name="rules", family=Family.IP).rules()
    return rule


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("-m socket --restore-skmark", (RestoreSocketMark(),)),
        ("-m socket --restore-skmark --transparent -j ACCEPT", (RestoreSocketMark(), Accept())),
        ("-m socket --transparent -j ACCEPT", (Accept(),)),
        (
            "-p tcp -m tcp --dport 8 -m socket --restore-skmark -m comment --comment x -j MARK --set-mark 1",
            (RestoreSocketMark(), SetMark(1, 0xFFFFFFFF)),
        ),
        ("-m socket --restore-skmark -m nfacct --nfacct-name n", (RestoreSocketMark(),)),
    ],
)
def test_the_mark_of_the_socket_comes_before_the_target(text: str, actions: tuple[Action, ...]) -> None:
    rule = read(text)
    assert rule.actions == actions
    assert not rule.unknown


@pytest.mark.parametrize(
    "text",
    [
        "-p tcp -m socket --restore-skmark -m tcp --dport 8 -j ACCEPT",
        "-m socket --restore-skmark -m mark --mark 1 -j ACCEPT",
        "-m socket --restore-skmark -m socket --transparent -j ACCEPT",
    ],
)
def test_a_later_test_is_not_modelled(text: str) -> None:
    (unknown,) = read(text).unknown
    assert unknown.reason == "-m socket changes packets that fail a later test of the rule"


def test_rules_of_one_shape() -> None:
    lines = [f"-A PREROUTING -s 10.0.0.{n} -m socket --restore-skmark -j ACCEPT" for n in range(4)]
    text = "\n".join(("*mangle", ":PREROUTING ACCEPT [0:0]", *lines, "COMMIT", ""))
    rules = read_ruleset(text.encode(), name="rules", family=Family.IP).rules()
    assert [rule.actions for rule in rules] == [(RestoreSocketMark(), Accept())] * 4


def test_nftables_decides_after_the_mark() -> None:
    """``socket mark`` ends the rule for the socket of a request, so the verdict is another rule."""
    rules = (
        "*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT -m socket --nowildcard --restore-skmark -j ACCEPT\nCOMMIT\n"
    )
    text = emit(lower(read_ruleset(rules.encode(), name="rules", family=Family.IP), level=2)).text
    lines = [line.partition(" comment ")[0].strip() for line in text.splitlines()]
    at = lines.index("meta mark set socket mark")
    assert lines[at + 1] == "accept"
