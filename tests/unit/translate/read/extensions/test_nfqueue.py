"""``-j NFQUEUE``: queues and flags, as iptables takes them, and their text in nftables."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import translate.nft
from harness.corpus.formats.ruletext import action_text
from tests.unit.translate.helpers.rules import program
from translate.errors import Diagnostic
from translate.ir import Family, Queue, Rule


@pytest.mark.parametrize(
    ("words", "queue", "statement"),
    [
        ("", Queue(first=0, last=0), "queue num 0"),
        ("--queue-num 0x10", Queue(first=16, last=16), "queue num 16"),
        ("--queue-bypass", Queue(first=0, last=0, bypass=True), "queue num 0 bypass"),
        ("--queue-balance 0:65534", Queue(first=0, last=65534), "queue num 0-65534"),
        ("--queue-balance 5:65535", Queue(first=5, last=65535), "queue num 5-65535"),  # as it is saved
        (
            "--queue-cpu-fanout --queue-balance 0:6 --queue-bypass",
            Queue(first=0, last=6, bypass=True, by_processor=True),
            "queue num 0-6 bypass,fanout",
        ),
    ],
)
def test_queues(read_rule: Callable[..., Rule], words: str, queue: Queue, statement: str) -> None:
    rule = f"-j NFQUEUE {words}".strip()
    assert read_rule(rule).actions == (queue,)
    assert f"\t\t{statement} comment" in translate.nft.emit(program("filter", f"-A INPUT {rule}")).text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--queue-num 65536", '"65536" is not a number from 0 to 65535'),
        ("--queue-num 1 --queue-balance 1:2", "NFQUEUE takes --queue-num or --queue-balance, not both"),
        ("--queue-balance 0:65535", '"0:65535" is not a range of at most 65535 queues'),
        ("--queue-balance 5:", 'the end of "5:" depends on the version of iptables'),
        ("--queue-balance 5", '"5" is not a range of at most 65535 queues'),
        ("--queue-balance 5:5", '"5:5" is not a range of at most 65535 queues'),
        ("--queue-num 1 --queue-cpu-fanout", "--queue-cpu-fanout needs --queue-balance"),
    ],
)
def test_faults(read_fault: Callable[..., Diagnostic], words: str, message: str) -> None:
    assert read_fault(f"-j NFQUEUE {words}").message == message


def test_the_description() -> None:
    text = action_text(Queue(first=1, last=2, bypass=True), Family.IP)
    where = "the program at one of the queues 1 to 2"
    assert text == f"hands it to {where}, and lets it pass the table if none reads it"
