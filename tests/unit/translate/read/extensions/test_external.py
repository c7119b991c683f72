"""Targets whose effect is outside of the packet filter: what is read, and why it is not translated."""

from __future__ import annotations

import pytest

import translate.bpf
from tests.unit.translate.helpers.rules import nft, program
from translate.errors import ParseError, UnsupportedError
from translate.ir import External, ExternalTarget
from translate.read import read_ruleset
from translate.write import write_save


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("IDLETIMER --timeout 5 --label a --alarm", "no timers that report"),
        ('LED --led-trigger-id "a" --led-delay inf --led-always-blink', "no LED triggers"),
        ("RATEEST --rateest-name a --rateest-interval 250ms --rateest-ewmalog 0.5s", "no estimators"),
    ],
)
def test_the_next_rule_sees_the_same_packet(target: str, reason: str) -> None:
    text = f"*mangle\n:INPUT ACCEPT [0:0]\n-A INPUT -j {target}\nCOMMIT\n"
    ruleset = read_ruleset(text.encode(), name="rules")
    assert write_save(ruleset) == text
    (rule,) = ruleset.tables[0].chains[0].rules
    assert rule.actions == (External(ExternalTarget(target.split()[0])),)
    assert not rule.is_undecided
    with pytest.raises(UnsupportedError, match=reason):
        nft("mangle", f"-A INPUT -j {target}")
    with pytest.raises(UnsupportedError, match="no effect like that of"):
        translate.bpf.emit(program("mangle", f"-A INPUT -j {target}"))


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        ("mangle", "IDLETIMER --label a", 'needs the option "--timeout"'),
        ("mangle", "IDLETIMER --timeout 0 --label a", "from 1 to 2147482 seconds"),
        ("mangle", f"IDLETIMER --timeout 5 --label {'a' * 28}", "has 1 to 27 bytes"),
        ("mangle", "LED --led-delay 5", 'needs the option "--led-trigger-id"'),
        ("mangle", "LED --led-trigger-id a --led-delay x", "is not a number"),
        (
            "mangle",
            "RATEEST --rateest-name a --rateest-interval 250ms",
            'needs the option "--rateest-ewmalog"',
        ),
        ("mangle", "RATEEST --rateest-name a --rateest-interval x --rateest-ewmalog 1s", "is not a time"),
    ],
)
def test_what_the_kernel_does_not_take_is_refused(table: str, target: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        program(table, f"-A INPUT -j {target}")
