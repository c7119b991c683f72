from __future__ import annotations

import pytest

from tests.unit.translate.rules import program, statements
from translate.ir import RANDOM_RANGE, Apply, Choose, Jump
from translate.passes import verify

SERVICE = "-A PREROUTING -d 10.96.0.10/32 -p udp -m udp --dport 53 -j SVC"


def draw(share: float | None, chain: str, target: str) -> str:
    if share is None:
        return f"-A {chain} -j {target}"
    return f"-A {chain} -m statistic --mode random --probability {share:.11f} -j {target}"


def endpoint(number: int, proto: str = "udp") -> str:
    return f"-A SEP{number} -p {proto} -m {proto} -j DNAT --to-destination 10.244.0.{number}:53"


def service(n: int) -> tuple[str, ...]:
    """A service of n endpoints as kube-proxy writes it: ten decimal places."""
    ladder = (draw(round(1 / (n - k), 10) if k < n - 1 else None, "SVC", f"SEP{k}") for k in range(n))
    return (SERVICE, *ladder, *(endpoint(k) for k in range(n)))


def of_service(*rules: str) -> tuple[object, ...]:
    return statements(verify(program("nat", *rules, level=1)), "nat/SVC")


@pytest.mark.parametrize("n", [2, 3, 5, 7, 50])
def test_kube_proxys_equal_split_is_one_even_draw(n: int) -> None:
    (found,) = of_service(*service(n))
    assert isinstance(found, Choose)
    assert found.equal
    assert [b.actions for b in found.branches] == [(Jump(f"nat/SEP{k}"),) for k in range(n)]
    assert sum(b.weight for b in found.branches) == RANDOM_RANGE
    # The bound that the pass promises.
    assert all(abs(b.weight - RANDOM_RANGE / n) <= 2 for b in found.branches)


def test_an_uneven_ladder_keeps_its_exact_shares() -> None:
    rules = (SERVICE, draw(0.25, "SVC", "SEP1"), draw(0.5, "SVC", "SEP2"), draw(None, "SVC", "SEP3"))
    (found,) = of_service(*rules, *(endpoint(k) for k in (1, 2, 3)))
    assert isinstance(found, Choose)
    assert not found.equal
    quarter = RANDOM_RANGE // 4
    assert [b.weight for b in found.branches] == [quarter, 3 * quarter // 2, 3 * quarter // 2]


def test_a_ladder_without_a_last_rung_leaves_a_branch_that_goes_on() -> None:
    rules = (SERVICE, draw(0.5, "SVC", "SEP1"), draw(0.5, "SVC", "SEP2"))
    (found,) = of_service(*rules, endpoint(1), endpoint(2))
    assert isinstance(found, Choose)
    assert [(b.weight * 4 // RANDOM_RANGE, len(b.actions)) for b in found.branches] == [
        (2, 1),
        (1, 1),
        (1, 0),
    ]


def test_shares_that_are_no_parts_of_two_to_the_31_stay_a_ladder() -> None:
    rules = (SERVICE, draw(0.3, "SVC", "SEP1"), draw(0.3, "SVC", "SEP2"), draw(None, "SVC", "SEP3"))
    found = of_service(*rules, *(endpoint(k) for k in (1, 2, 3)))
    assert all(isinstance(s, Apply) for s in found)
    assert len(found) == 3


def test_a_branch_that_may_come_back_is_not_drawn_over() -> None:
    # SEP1's DNAT is for tcp, and the service is udp: control comes back and the ladder draws again.
    rules = (SERVICE, draw(0.5, "SVC", "SEP1"), draw(None, "SVC", "SEP2"), endpoint(1, "tcp"), endpoint(2))
    found = of_service(*rules)
    assert all(isinstance(s, Apply) for s in found)


def test_every_caller_must_have_asked_for_the_protocol() -> None:
    other = "-A PREROUTING -s 192.0.2.1/32 -j SVC"
    assert all(isinstance(s, Apply) for s in of_service(other, *service(2)))


def test_callers_that_no_packet_comes_from_do_not_count() -> None:
    nowhere = "-A NOWHERE -s 192.0.2.1/32 -j SVC"
    (found,) = of_service(nowhere, *service(2))
    assert isinstance(found, Choose)


def test_the_ladder_is_cut_behind_the_branch_without_a_proof() -> None:
    rules = (
        SERVICE,
        draw(0.25, "SVC", "SEP1"),
        draw(0.5, "SVC", "SEP2"),
        draw(0.5, "SVC", "SEP3"),
        draw(None, "SVC", "SEP4"),
    )
    found = of_service(*rules, endpoint(1), endpoint(2, "tcp"), endpoint(3), endpoint(4))
    assert [len(s.branches) for s in found if isinstance(s, Choose)] == [3, 2]
    assert len(found) == 2
