from __future__ import annotations

import pytest

from tests.unit.translate.bpf.chains.test_code import CONTEXT
from tests.unit.translate.helpers.rules import program
from translate.bpf import emit
from translate.bpf.chains.code import Feature
from translate.bpf.chains.conditions import conditions
from translate.ir import Field, FieldTest, Interval


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (2, "(p->options[0] & 0x4ULL) == 0x4ULL"),
        (64, "(p->options[1] & 0x1ULL) == 0x1ULL"),
        (255, "(p->options[3] & 0x8000000000000000ULL) == 0x8000000000000000ULL"),
    ],
)
def test_a_kind_of_option_is_a_bit(kind: int, text: str) -> None:
    bit = 1 << kind
    test = FieldTest(field=Field.TCP_OPTIONS, mask=bit, values=(Interval.point(bit),))
    negated = FieldTest(field=Field.TCP_OPTIONS, mask=bit, values=(Interval.point(bit),), negated=True)
    assert conditions((test,), CONTEXT).text == f"p->has_options && ({text})"
    assert conditions((negated,), CONTEXT).text == f"p->has_options && !({text})"
    assert conditions((test,), CONTEXT).needs.features == {Feature.TCP_OPTIONS}


def test_several_kinds_are_in_several_words() -> None:
    mask = 1 << 3 | 1 << 130
    test = FieldTest(field=Field.TCP_OPTIONS, mask=mask, values=(Interval.point(1 << 3),))
    first, third = "(p->options[0] & 0x8ULL) == 0x8ULL", "(p->options[2] & 0x4ULL) == 0x0ULL"
    assert conditions((test,), CONTEXT).text == f"p->has_options && ({first} && {third})"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("-m quota --quota 1000", "within_quota(0, 1000ULL, p->length)"),
        ("-m quota ! --quota 5", "!within_quota(0, 5ULL, p->length)"),
        (
            "-m cluster --cluster-total-nodes 3 ! --cluster-local-node 2 --cluster-hash-seed 5",
            "cluster_share(skb, p, 3, 0x2, 0x5, 1)",
        ),
        ("-m devgroup --src-group 5", "p->iif && device_group(p->iif) == 0x5"),
        (
            "-m hashlimit --hashlimit-above 1/s --hashlimit-name a --hashlimit-mode srcip,dstport"
            " --hashlimit-srcmask 24",
            "!within_hash_limit((struct hash_key){ .table = 0, .saddr = to_wire(p->saddr & 0xffffff00),"
            " .ports = hashed_ports(skb, p) & 0xffff }, 1000000000ULL, 5000000000ULL, 1000000000ULL)",
        ),
    ],
)
def test_matches_with_a_state_or_a_hash(rule: str, text: str) -> None:
    assert f"if ({text}) {{" in emit(program("filter", f"-A FORWARD {rule} -j DROP")).chains


def test_a_match_that_changes_something_is_evaluated_without_a_target() -> None:
    rule = "-A FORWARD -m hashlimit --hashlimit-upto 1/s --hashlimit-name a"
    assert "(void)(within_hash_limit(" in emit(program("filter", rule)).chains
    assert "within_quota" not in emit(program("filter", "-A FORWARD -m quota --quota 5")).chains


def test_two_rules_share_a_table() -> None:
    rule = "-A FORWARD -m hashlimit --hashlimit-{} 1/s --hashlimit-name {} -j DROP"
    rules = (rule.format("upto", "a"), rule.format("upto", "b"), rule.format("above", "a"))
    chains = emit(program("filter", *rules)).chains
    assert (chains.count(".table = 0 }"), chains.count(".table = 1 }")) == (2, 1)


def test_the_clock_is_read_once_for_a_packet() -> None:
    rule = "-A FORWARD -m time --timestart 08:00 --timestop 17:00 --weekdays Sat,Sun --monthdays 1,31 -j DROP"
    output = emit(program("filter", rule))
    for text in (
        "(p->clock % 86400) >= 0x7080",
        "((p->clock / 86400 + 4) % 7) == 0x0",
        "day_of_month(p->clock / 86400)",
    ):
        assert text in output.chains
    assert "#define READS_CLOCK 1" in output.source
    assert {note.feature for note in output.notes} == {"clock-lead"}
