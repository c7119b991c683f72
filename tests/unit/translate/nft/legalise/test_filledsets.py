"""``-j SET`` as statements that change an nft set, and what nftables cannot change."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft, program
from translate.errors import UnsupportedError
from translate.nft import emit

SETS = """create plain hash:ip
add plain 10.0.0.1
create short hash:ip timeout 60
create kept hash:ip timeout 0
add kept 10.0.0.1
create small hash:ip maxelem 10 forceadd
create ports hash:ip,port
create nets hash:net
create range bitmap:port range 0-100
"""
NONZERO = "ip saddr != 0.0.0.0"


def change(target: str, tests: str = "") -> list[str]:
    rules = nft("filter", f"-A FORWARD {tests} -j SET {target}", ipsets=SETS)
    return rules["filter_FORWARD"]


@pytest.mark.parametrize(
    ("target", "statement"),
    [
        ("--add-set plain src", f"{NONZERO} add @set_plain {{ ip saddr }}"),
        ("--add-set plain dst --exist", "ip daddr != 0.0.0.0 add @set_plain { ip daddr }"),
        ("--add-set plain src --timeout 5", f"{NONZERO} add @set_plain {{ ip saddr }}"),
        ("--del-set plain src", f"{NONZERO} delete @set_plain {{ ip saddr }}"),
        ("--add-set short src", f"{NONZERO} add @set_short {{ ip saddr timeout 60s }}"),
        ("--add-set short src --exist", f"{NONZERO} update @set_short {{ ip saddr timeout 60s }}"),
        ("--add-set short src --timeout 0", f"{NONZERO} add @set_short {{ ip saddr }}"),
        ("--add-set kept src --timeout 5", f"{NONZERO} add @set_kept {{ ip saddr timeout 5s }}"),
    ],
)
def test_a_change_is_one_statement(target: str, statement: str) -> None:
    assert change(target) == [statement]


def test_a_set_begins_with_the_saved_elements() -> None:
    rule = "-A FORWARD -m set ! --match-set plain src -j SET --add-set plain src"
    output = emit(program("filter", rule, ipsets=SETS))
    assert output.flush.splitlines() == [
        "flush set ip nfparity set_plain",
        'add element ip nfparity set_plain { 10.0.0.1 comment "line 2" }',
    ]
    assert "\t\tsize 65536\n\t\tflags dynamic\n" in output.text
    assert f"ip saddr != @set_plain {NONZERO} add @set_plain {{ ip saddr }}" in output.text
    (note,) = output.notes
    assert note.text.startswith("the ipset plain is no longer changed")


def test_two_changes_do_not_depend_on_each_other() -> None:
    rules = nft("filter", "-A FORWARD -j SET --add-set plain src --del-set short dst", ipsets=SETS)
    assert rules["filter_FORWARD"] == ["jump filter_FORWARD_2"]
    assert rules["filter_FORWARD_2"] == [
        f"{NONZERO} add @set_plain {{ ip saddr }}",
        "ip daddr != 0.0.0.0 delete @set_short { ip daddr }",
    ]


def test_ports_are_those_of_protocols_that_have_them() -> None:
    key = "{ ip saddr . meta l4proto . th dport }"
    assert change("--add-set ports src,dst", "-p udp") == [f"meta l4proto udp add @set_ports {key}"]
    (deleted,) = change("--del-set ports src,dst")
    assert deleted == f"meta l4proto {{ tcp, udp, sctp, udplite }} delete @set_ports {key}"


@pytest.mark.parametrize(
    ("targets", "feature"),
    [
        (["--add-set nets src"], "set-intervals"),
        (["--del-set range dst"], "set-intervals"),
        (["--add-set small src"], "set-forceadd"),
        (["--add-set ports src,dst"], "set-ports"),
        (["--add-set kept src --exist --timeout 5"], "set-timeouts"),
        (["--add-set short src --exist", "--add-set short src --timeout 0"], "set-timeouts"),
    ],
)
def test_what_nftables_cannot_change_is_refused(targets: list[str], feature: str) -> None:
    rules = [f"-A FORWARD -j SET {target}" for target in targets]
    with pytest.raises(UnsupportedError) as caught:
        nft("filter", *rules, ipsets=SETS)
    assert {refusal.feature for refusal in caught.value.refusals} == {feature}


def test_elements_without_timeout_may_begin_theirs_again() -> None:
    assert change("--add-set short src --exist --timeout 0") == [f"{NONZERO} add @set_short {{ ip saddr }}"]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_test_of_the_set_stays_on_its_side_of_the_change(level: int) -> None:
    rules = nft(
        "filter",
        "-A FORWARD -m set --match-set plain src -j ACCEPT",
        "-A FORWARD -j SET --add-set plain src",
        "-A FORWARD -m set --match-set plain src -j DROP",
        level=level,
        ipsets=SETS,
    )
    assert rules["filter_FORWARD"] == [
        "ip saddr @set_plain accept",
        f"{NONZERO} add @set_plain {{ ip saddr }}",
        "ip saddr @set_plain drop",
    ]
