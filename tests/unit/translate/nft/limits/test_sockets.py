"""``-m cgroup`` and ``-m owner`` in POSTROUTING, where nft has no match for a full socket."""

from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program
from translate import nft
from translate.errors import UnsupportedError

JUMP = "-A POSTROUTING -j later\n-A later"


@pytest.mark.parametrize(
    ("rule", "exact"),
    [
        ("-A OUTPUT -m cgroup --cgroup 5", True),
        ("-A INPUT -p tcp -m cgroup --path a", True),
        ("-A POSTROUTING -m cgroup --cgroup 5", False),
        ("-A POSTROUTING -p tcp -m cgroup ! --cgroup 5", False),
        ("-A POSTROUTING -p udp -m cgroup ! --cgroup 5", True),
        ("-A POSTROUTING ! -p tcp -m cgroup --cgroup 5", False),  # DCCP
        ("-A POSTROUTING -p udp -m cgroup --path a", False),
        (f"{JUMP} -m cgroup --cgroup 5", False),
        (f"{JUMP} -p icmp -m cgroup --cgroup 5", True),
    ],
)
@pytest.mark.parametrize("level", [0, 2])
def test_answers_to_a_syn(rule: str, exact: bool, level: int) -> None:
    lowered = program("mangle", *f"{rule} -j DROP".splitlines(), level=level)
    if exact:
        assert "cgroup" in nft.emit(lowered).text
        return
    with pytest.raises(UnsupportedError) as caught:
        nft.emit(lowered)
    assert {refusal.feature for refusal in caught.value.refusals} == {"cgroup-hook"}


@pytest.mark.parametrize(
    ("rule", "exact"),
    [
        ("-A OUTPUT -m owner ! --socket-exists", True),
        ("-A POSTROUTING -m owner --uid-owner 5", True),
        ("-A POSTROUTING -p udp -m owner --socket-exists", True),
        ("-A POSTROUTING -m owner --socket-exists", False),
        ("-A POSTROUTING -p sctp -m owner ! --socket-exists", False),
        (f"{JUMP} -p tcp -m owner --socket-exists", False),
    ],
)
def test_connections_without_a_process(rule: str, exact: bool) -> None:
    lowered = program("mangle", *f"{rule} -j DROP".splitlines())
    if exact:
        assert "drop" in nft.emit(lowered).text
        return
    with pytest.raises(UnsupportedError) as caught:
        nft.emit(lowered)
    assert {refusal.feature for refusal in caught.value.refusals} == {"owner-hook"}
