from __future__ import annotations

import pytest

from tests.unit.translate.helpers.rules import program, statements
from translate.ir import RANDOM_RANGE, Choose, Jump
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
