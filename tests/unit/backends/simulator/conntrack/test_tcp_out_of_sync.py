"""Segments of connections that conntrack does not know well: what passes, and what is remembered."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import pytest

from backends.model.flow import Pause, Send
from backends.simulator.conntrack.tcp import TcpTrack
from translate.ir import TcpFlag

RULES = """
    mangle: -A PREROUTING -m conntrack --ctstate NEW -j MARK --set-xmark 0x1/0xf
    mangle: -A PREROUTING -m conntrack --ctstate ESTABLISHED -j MARK --set-xmark 0x2/0xf
    mangle: -A PREROUTING -m conntrack --ctstate INVALID -j MARK --set-xmark 0x4/0xf
    mangle: -A PREROUTING -m conntrack --ctstatus ASSURED -j MARK --set-xmark 0x8/0x8
"""
NEW, ESTABLISHED, INVALID, ASSURED = 1, 2, 4, 10
FLAGS = {"S": TcpFlag.SYN, "A": TcpFlag.ACK, "R": TcpFlag.RST, "F": TcpFlag.FIN}
HANDSHAKE = (">S 1000", "<SA 5000 1001", ">A 1001 5001")
SYNS = (">S 1000", "<S 5000", ">SA 1001 5001", ">S 1002")
TWO_SYNS = (">S 1000", "<S 5000", ">SA 1000 5001")
ENDS = ("<FA 5001 900000", ">RA 900000 5001")


def segment(lab, words: str) -> Send:
    """A segment in a few words: its direction, its flags, and the sequence and acknowledgement numbers."""
    name, *numbers = words.split()
    seq, ack = (*map(int, numbers), 0)[:2]
    flags = TcpFlag(0)
    for letter in name[1:]:
        flags |= FLAGS[letter]
    if name[0] == ">":
        return lab.tcp("10.1.0.5", "10.2.0.5", sport=40000, dport=80, flags=flags, seq=seq, ack=ack)
    return lab.tcp("10.2.0.5", "10.1.0.5", "east", sport=80, dport=40000, flags=flags, seq=seq, ack=ack)


def marks(lab, *steps: str | float) -> list[int | None]:
    return [
        o.mark
        for o in lab.run(
            RULES, *(Pause(seconds=s) if isinstance(s, float) else segment(lab, s) for s in steps)
        )
    ]


@pytest.mark.parametrize("rst", ["<R 72301", "<RA 72301"])
def test_a_rst_is_no_answer_to_the_syn_of_its_own_side(lab, rst: str) -> None:
    assert marks(lab, ">S 1000", "<S 5000", rst) == [NEW, ESTABLISHED, INVALID]


def test_a_rst_that_answers_a_syn_that_was_let_through_is_not_checked(lab) -> None:
    assert marks(lab, *HANDSHAKE, ">S 900000", "<RA 7 900001")[-1] == ASSURED
    assert marks(lab, *HANDSHAKE, ">S 900000", ">RA 7 900001")[-1] == INVALID


@pytest.mark.parametrize(("steps", "state"), [(SYNS[:3], ASSURED), (SYNS, ESTABLISHED)])
def test_a_syn_that_is_let_through_ends_a_simultaneous_open(lab, steps: tuple[str, ...], state: int) -> None:
    assert marks(lab, *steps, "<A 5001 1001", "<A 5001 1001")[-1] == state


def test_a_fin_outside_the_window_is_remembered(lab) -> None:
    """The RST is checked like any other, because the SYN is not the last segment any more."""
    steps = (*HANDSHAKE, ">S 999", ">FA 1000 5011")
    assert marks(lab, *steps, ">RA 1000 3332000000")[-2:] == [INVALID, INVALID]
    data = (*HANDSHAKE[:2], ">A 1001 5001", ">S 999", "<FA 5001 900000")
    assert marks(lab, *data, "<RA 7 1000")[-2:] == [INVALID, INVALID]


@pytest.mark.parametrize(
    ("ends", "state"),
    [(ENDS, NEW), (ENDS[::-1], NEW), (ENDS[:1], ASSURED), (ENDS[:1] * 2, ASSURED), (ENDS[1:], ASSURED)],
)
def test_ends_outside_the_window_that_answer_each_other_shorten_the_timeout(
    lab, ends: tuple[str, ...], state: int
) -> None:
    assert marks(lab, *HANDSHAKE, *ends, 299.0, ">A 1001 5001")[-1] == ASSURED
    assert marks(lab, *HANDSHAKE, *ends, 301.0, ">A 1001 5001")[-1] == state


def test_a_timeout_of_less_than_two_minutes_stays(lab) -> None:
    prefix = "net.netfilter.nf_conntrack_tcp_timeout_"
    lab.sysctls |= {f"{prefix}established": "100", f"{prefix}unacknowledged": "10"}
    assert marks(lab, *HANDSHAKE, *ENDS, 50.0, ">A 1001 5001")[-1] == ASSURED


@pytest.mark.parametrize(("mss", "state"), [(1460, ESTABLISHED), (None, INVALID)])
def test_only_a_syn_with_options_forgets_the_highest_ack(lab, mss: int | None, state: int) -> None:
    again = lab.tcp(
        *("10.1.0.5", "10.2.0.5"),
        sport=40000,
        dport=80,
        flags=TcpFlag.SYN | TcpFlag.ACK,
        seq=1010,
        ack=4990,
        mss=mss,
    )
    steps = (*(segment(lab, words) for words in TWO_SYNS), again, segment(lab, "<R 4995"))
    assert [o.mark for o in lab.run(RULES, *steps)][-1] == state


def test_a_rst_before_the_highest_ack_is_taken_if_the_sysctl_says_so(lab) -> None:
    steps = (*HANDSHAKE, "<R 900")
    assert marks(lab, *steps)[-1] == INVALID
    lab.sysctls["net.netfilter.nf_conntrack_tcp_ignore_invalid_rst"] = "1"
    assert marks(lab, *steps)[-1] == ASSURED


def test_a_copy_for_another_run_has_all_that_is_remembered() -> None:
    track = TcpTrack(loose=True, liberal=True)
    numbers = iter(range(100, 200))
    for part in (*track.seen, track):
        for number, field in enumerate(fields(part)):
            if field.name != "seen":
                value = next(numbers) if number % 2 else not getattr(part, field.name)
                setattr(part, field.name, value)
    copy = track.split()
    assert is_dataclass(copy)
    assert copy == track
    assert copy.seen[0] is not track.seen[0]
    copy.seen[1].end += 1
    assert copy != track
