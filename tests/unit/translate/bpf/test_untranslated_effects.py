from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate.bpf import emit


@pytest.mark.parametrize("level", [0, 1])
def test_a_note_for_each_thing_that_is_not_said(level: int) -> None:
    output = emit(
        program(
            "filter",
            "-A FORWARD -m nfacct --nfacct-name one -j DROP",
            "-A INPUT -m nfacct --nfacct-name one -j DROP",
            "-A INPUT -p udp -j LOG",
            "-A INPUT -p tcp -j NFLOG",
            level=level,
        )
    )
    found = [(note.feature, note.origin.line) for note in output.notes]
    assert [feature for feature, _ in found] == ["nfacct", "log", "log"]
    assert len(set(found)) == 3


def test_a_rule_that_logs_lets_the_packet_go_on() -> None:
    text = emit(program("filter", "-A FORWARD -p udp -j LOG", "-A FORWARD -p udp -j DROP")).chains
    assert text.index("/* not logged */") < text.index("return DROP;")


def test_an_mss_is_not_added() -> None:
    output = emit(program("mangle", "-A FORWARD -p tcp --syn -j TCPMSS --set-mss 1400"))
    assert [note.feature for note in output.notes] == ["tcpmss"]
