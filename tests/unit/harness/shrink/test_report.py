"""Reports of reduced faults."""

from __future__ import annotations

from harness.diff.result import Difference
from harness.shrink.report import difference_report, load_report
from harness.shrink.translator import Translator
from translate.read import read_ruleset

TEXT = "*filter\n:FORWARD ACCEPT [0:0]\n-A FORWARD -s 10.0.0.1/32 -j ACCEPT\nCOMMIT\n"
RULESET = read_ruleset(TEXT.encode(), name="rules")
DIFFERENCE = Difference(
    backend="nftables",
    flow_id="x",
    flow_source="",
    step=0,
    step_text="first packet udp 10.0.0.1:1 > 10.0.0.2:2",
    field="verdict",
    expected="drop",
    observed=None,
    rules=(),
    command="",
)


def test_a_difference() -> None:
    text = difference_report(RULESET, DIFFERENCE, command="nfparity diff", backend=object())
    assert text.startswith("# nftables differs in verdict\n")
    assert TEXT in text
    assert "The packet: first packet udp 10.0.0.1:1 > 10.0.0.2:2\n" in text
    assert "| expected | drop |\n| observed | (nothing) |" in text
    assert text.endswith("```\nnfparity diff\n```\n")
    assert "script" not in text


def test_a_script_for_another_translator() -> None:
    text = difference_report(RULESET, DIFFERENCE, command="x", backend=Translator("cat {}"))
    assert f"cat > rules.txt <<'END'\n{TEXT}END\ncat rules.txt | tee rules.nft\n" in text
    assert f"The translation:\n\n```\n{TEXT}```" in text


def test_rules_that_nft_does_not_load() -> None:
    text = load_report(RULESET, "Error: syntax error\n", backend=Translator("cat {}"))
    assert text.startswith("# nft does not load the output of cat\n")
    assert text.endswith("Observed:\n\n```\nError: syntax error\n```\n")
