"""The report of missing modules."""

from __future__ import annotations

from nfparity.report.requires import requires_json, requires_lines
from nfparity.requires import Modules, Need, Purpose
from translate.ir import Origin

RULES = tuple(Origin(file="rules", line=line, text=f"-A INPUT -p {line} -j LOG") for line in (9, 3, 5, 7, 8))
NEEDS = (
    Need(module="xt_LOG", purpose=Purpose.RULES, feature="-j LOG", rules=RULES),
    Need(module="xt_mark", purpose=Purpose.RULES, feature="-m mark", rules=RULES[:1]),
    Need(module="xt_mark", purpose=Purpose.RULES, feature="-j MARK", rules=RULES[1:2]),
    Need(module="nft_log", purpose=Purpose.TRANSLATION, feature=""),
)


def test_rules_are_shown_in_their_order_and_the_rest_is_counted() -> None:
    machine = Modules(
        name="old", absent=("xt_LOG",), optional=("xt_mark",), package="extra", sources=("here",)
    )
    assert list(requires_lines(NEEDS, machine)) == [
        "the rules today: xt_LOG, xt_mark",
        "their translation to nftables: nft_log",
        "",
        "missing on old, for the rules today",
        "  xt_LOG: -j LOG",
        "    line 3: -A INPUT -p 3 -j LOG",
        "    line 5: -A INPUT -p 5 -j LOG",
        "    line 7: -A INPUT -p 7 -j LOG",
        "    and 2 more rules",
        "",
        "on old only with the package extra, for the rules today",
        "  xt_mark: -m mark, -j MARK",
        "    line 3: -A INPUT -p 3 -j LOG",
        "    line 9: -A INPUT -p 9 -j LOG",
        "",
        "source: here",
    ]


def test_nothing_is_missing() -> None:
    assert list(requires_lines(NEEDS, Modules(name="new")))[-1] == "new has all of them"


def test_rules_are_printed_without_control_characters() -> None:
    origin = Origin(file="rules", line=1, text="-A A -m comment --comment \x1b[31m")
    need = Need(module="xt_comment", purpose=Purpose.RULES, feature="-m comment", rules=(origin,))
    assert "\x1b" not in "".join(requires_lines([need], Modules(name="m", absent=("xt_*",))))


def test_json_without_a_machine_has_no_presence() -> None:
    data = requires_json(NEEDS, None)
    assert data["machine"] is None
    assert data["needs"][0]["presence"] is None
    assert data["needs"][0]["lines"] == [9, 3, 5, 7, 8]
