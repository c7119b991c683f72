"""Connections in a flowtable go as without one, by real sockets; and they are in it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TypeVar

import pytest

from tests.kernel.helpers.offloaded import (
    DETOUR,
    SERVER,
    SERVICE,
    SOURCE,
    Close,
    Ends,
    Open,
    Provoke,
    Say,
    Scene,
    Stop,
)
from tests.lab.flowtables import missing_flowtables
from translate.ir import Family

Result = TypeVar("Result")
TCP, UDP = socket.SOCK_STREAM, socket.SOCK_DGRAM
KINDS = {"tcp": TCP, "udp": UDP}
FIRST = (b"one", b"two", b"three")
MANY = tuple(b"%d" % number for number in range(200))
LARGE = (b"x" * 20_000, b"y" * 60_000)


@pytest.fixture(autouse=True)
def _kernel_with_flowtables() -> None:
    missing = missing_flowtables()
    if missing is not None:
        pytest.skip(missing)


def both(family: Family, run: Callable[[Scene], Result]) -> Result:
    """Return what ``run`` returns without a flowtable, which must be what it returns with one."""
    results: list[Result] = []
    for offloads in (False, True):
        with Scene(family, offloads=offloads) as scene:
            results.append(run(scene))
    assert results[0] == results[1]
    return results[1]


def is_offloaded(scene: Scene, protocol: str) -> bool:
    (line,) = scene.tracked(protocol)
    return "[OFFLOAD]" in line


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("protocol", KINDS)
def test_payload_and_addresses(protocol: str, family: Family) -> None:
    def run(scene: Scene) -> list[bytes]:
        scene.client(Open("c", KINDS[protocol], family))
        answers: list[bytes] = scene.client(Say("c", FIRST + MANY))
        if protocol == "tcp":
            answers += scene.client(Say("c", LARGE))
        return answers

    answers = both(family, run)
    assert answers[:3] == [f"{SOURCE[family]} {line.decode()}\n".encode() for line in FIRST]


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("protocol", KINDS)
def test_packets_are_offloaded(protocol: str, family: Family) -> None:
    """They skip FORWARD, and conntrack shows the connection as offloaded, with its packets counted."""
    with Scene(family, offloads=True) as scene:
        scene.client(Open("c", KINDS[protocol], family))
        scene.client(Say("c", FIRST))
        assert is_offloaded(scene, protocol)
        before = scene.passed(protocol)
        scene.client(Say("c", MANY))
        assert scene.passed(protocol) == before
    with Scene(family, offloads=False) as scene:
        scene.client(Open("c", KINDS[protocol], family))
        scene.client(Say("c", FIRST))
        assert not is_offloaded(scene, protocol)
        before = scene.passed(protocol)
        scene.client(Say("c", MANY))
        assert scene.passed(protocol) >= before + 2 * len(MANY)


@pytest.mark.parametrize("reset", [False, True], ids=["FIN", "RST"])
def test_a_connection_ends(reset: bool) -> None:
    def run(scene: Scene) -> tuple[object, list[str]]:
        scene.client(Open("c", TCP, Family.IP))
        answers = scene.client(Say("c", FIRST + MANY))
        scene.client(Close("c", reset))
        ends = scene.server(Ends(1))
        (line,) = scene.tracked("tcp")
        assert "[OFFLOAD]" not in line
        return answers, ends

    _, ends = both(Family.IP, run)
    assert ends == (["ConnectionResetError"] if reset else ["closed"])


@pytest.mark.parametrize("family", Family)
def test_a_datagram_too_large_for_the_way_is_answered(family: Family) -> None:
    """The node answers that fragmentation is needed; the client learns the MTU."""

    def run(scene: Scene) -> tuple[object, tuple[str, int], object]:
        scene.ip("node", "link set eth1 mtu 1400")
        scene.client(Open("c", UDP, family))
        answers = scene.client(Say("c", FIRST))
        return answers, scene.client(Provoke("c", 1420)), scene.client(Say("c", FIRST))

    _, (_, mtu), _ = both(family, run)
    assert mtu == 1400


@pytest.mark.parametrize("family", Family)
def test_an_unreachable_port_is_told(family: Family) -> None:
    """The server's ICMP error comes back to the client with the addresses of the client's packet."""

    def run(scene: Scene) -> tuple[object, str]:
        scene.client(Open("c", UDP, family))
        answers = scene.client(Say("c", FIRST))
        scene.server(Stop())
        return answers, scene.client(Provoke("c", 10))[0]

    _, error = both(family, run)
    assert error == "ConnectionRefusedError"


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize("protocol", KINDS)
def test_a_route_changes(protocol: str, family: Family) -> None:
    """Packets take the new route at once; the connection goes on with its addresses."""

    def run(scene: Scene) -> tuple[object, bool]:
        scene.client(Open("c", KINDS[protocol], family))
        answers = scene.client(Say("c", FIRST))
        scene.ip("node", f"route replace {DETOUR[family]} dev eth2")
        before = scene.arrived("detour", "eth0")
        answers += scene.client(Say("c", MANY))
        return answers, scene.arrived("detour", "eth0") >= before + len(MANY)

    _, by_new_route = both(family, run)
    assert by_new_route


def test_the_service_address_alone_is_seen_by_the_client() -> None:
    with Scene(Family.IP, offloads=True) as scene:
        scene.client(Open("c", TCP, Family.IP))
        scene.client(Say("c", FIRST + MANY))
        (line,) = scene.tracked("tcp")
        assert f"dst={SERVICE[Family.IP]}" in line
        assert f"src={SERVER[Family.IP]}" in line
