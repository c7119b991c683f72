from __future__ import annotations

import pytest

from tests.lab import roundtrip
from tests.lab.roundtrip import reread
from translate.errors import NfparityError
from translate.ir import Family, Ruleset
from translate.write import write_save

RULE = "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -p udp -m udp --dport 53 -j DROP\nCOMMIT\n"


def test_what_is_read_comes_back() -> None:
    written = reread(RULE, Family.IP)
    assert written is not None
    assert reread(written, Family.IP) == written


def test_a_refusal_needs_a_line_and_a_message() -> None:
    assert reread(RULE.replace("--dport", "--port"), Family.IP) is None


def test_a_text_that_is_written_as_another_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(ruleset: Ruleset, *, counters: bool) -> str:
        return write_save(ruleset, counters=counters).replace("53", "54")

    monkeypatch.setattr(roundtrip, "write_save", wrong)
    with pytest.raises(AssertionError, match="read otherwise"):
        reread(RULE, Family.IP)
    monkeypatch.setattr(roundtrip, "write_save", lambda ruleset, counters: "*filter\n-A INPUT -x\nCOMMIT\n")
    with pytest.raises(NfparityError):
        reread(RULE, Family.IP)
