"""Helpers of conntrack: copies of the raw table behind conntrack, and refusals where they would differ."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import nft, program
from translate.errors import UnsupportedError
from translate.nft import emit

FTP = "-p tcp -m tcp --dport 21 -j CT --helper ftp"
BEHIND = "raw_helpers_of_"


@pytest.mark.parametrize("level", [0, 1])
def test_new_connections_get_a_helper_behind_conntrack(level: int) -> None:
    chains = nft("raw", f"-A PREROUTING {FTP} --zone 4", f"-A OUTPUT {FTP}", level=level)
    assert chains["raw_PREROUTING"] == ["tcp dport 21 ct state invalid ct zone set 4"]
    assert chains["raw_OUTPUT"] == ["tcp dport 21 ct state invalid ct zone set 0"]
    for hook in ("PREROUTING", "OUTPUT"):
        assert chains[f"raw_{hook}_behind_conntrack"] == [f"ct state new jump {BEHIND}{hook}"]
        assert chains[f"{BEHIND}{hook}"] == ['tcp dport 21 ct helper set "helper_ftp_tcp"']
    text = emit(program("raw", f"-A PREROUTING {FTP}", level=level)).text
    assert 'type "ftp" protocol tcp' in text
    assert "type filter hook prerouting priority -199; policy accept;" in text


def test_of_other_rules_the_way_through_them_is_left() -> None:
    chains = nft(
        "raw",
        "-A PREROUTING -i lo -j DROP",
        "-A PREROUTING -s 10.0.0.1/32 -j TRACE",
        "-A PREROUTING -s 10.0.0.2/32 -j MARK --set-xmark 0x1/0xffffffff",
        "-A PREROUTING -j work",
        "-A PREROUTING -d 10.0.0.9/32 -g work",
        "-A work -s 10.0.0.3/32 -j RETURN",
        "-A work -s 10.0.0.4/32 -j NOTRACK",
        "-A work -s 10.0.0.5/32 -j CT --zone 1",
        f"-A work {FTP}",
    )
    assert chains[f"{BEHIND}PREROUTING"] == [
        'iifname "lo" accept',
        f"jump {BEHIND}work",
        f"ip daddr 10.0.0.9 goto {BEHIND}work",
    ]
    assert chains[f"{BEHIND}work"] == [
        "ip saddr 10.0.0.3 return",
        "ip saddr 10.0.0.4 accept",
        "ip saddr 10.0.0.5 accept",
        'tcp dport 21 ct helper set "helper_ftp_tcp"',
    ]
    assert "raw_OUTPUT_behind_conntrack" not in chains


def test_a_raw_table_without_helpers_has_no_copies() -> None:
    assert not [name for name in nft("raw", "-A PREROUTING -j CT --zone 1") if "conntrack" in name]


@pytest.mark.parametrize(
    "other",
    [
        "-m limit --limit 1/s -j RETURN",
        "-m statistic --mode random --probability 0.5 -j RETURN",
        "-m conntrack --ctstate UNTRACKED -j RETURN",
        "-m recent --name a --rcheck -j RETURN",
        "-m mark --mark 1 -j MARK --set-xmark 0x2/0xffffffff",
        "-p tcp -m socket -j RETURN",
    ],
)
def test_what_could_have_another_answer_behind_conntrack_is_refused(other: str) -> None:
    rules = (f"-A PREROUTING {other}", f"-A PREROUTING {FTP}")
    with pytest.raises(UnsupportedError) as caught:
        emit(program("raw", *rules))
    (refusal,) = caught.value.refusals
    assert refusal.feature == "ct-template"
    assert "a test of line 4 may have another result there" in refusal.render()
    assert refusal.origin.line == 5


def test_a_mark_that_raw_does_not_set_has_the_same_answer() -> None:
    chains = nft("raw", f"-A OUTPUT -m mark --mark 1 {FTP}")
    assert chains[f"{BEHIND}OUTPUT"] == ['meta mark 0x1 tcp dport 21 ct helper set "helper_ftp_tcp"']


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("-p sctp -j CT --helper ftp", "does not take the helper 'ftp' for this protocol"),
        ('-p tcp -j CT --helper "a b"', "does not take the helper 'a b' for this protocol"),
        (f"{FTP} --timeout short", "a timeout policy only after conntrack"),
    ],
)
def test_what_nft_cannot_name(rule: str, message: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        emit(program("raw", f"-A PREROUTING {rule}"))
    (refusal,) = caught.value.refusals
    assert message in refusal.render()
