from __future__ import annotations

import pytest

from backends.model.node import Address, Interface, Node, Route
from backends.simulator.routing.ip4 import Router
from backends.simulator.routing.path import LOOPBACK, NoRoute, Path
from translate.ir import AddressType, Family, Interval, parse_address


def ip(text: str) -> int:
    return parse_address(Family.IP, text)


def address(text: str) -> Address:
    value, length = text.split("/")
    return Address(Family.IP, ip(value), int(length))


def router(**sysctls: str) -> Router:
    names = {k.replace("__", "."): v for k, v in sysctls.items()}
    return Router(
        Node(
            interfaces=(
                Interface("eth0", (address("172.18.0.2/16"), address("172.18.0.9/16"))),
                Interface("pod0", (address("10.244.0.1/32"),)),
                Interface("pod1", (address("10.244.0.1/32"),)),
                Interface("bare", ()),
            ),
            routes=(
                Route(family=Family.IP, dst=Interval(0, 0xFFFFFFFF), dev="eth0", via=ip("172.18.0.1")),
                Route(family=Family.IP, dst=Interval.point(ip("10.244.0.3")), dev="pod0"),
            ),
            sysctls=names,
        )
    )


@pytest.mark.parametrize(
    ("text", "dev", "kind"),
    [
        ("172.18.0.2", None, AddressType.LOCAL),
        ("172.18.0.9", "eth0", AddressType.LOCAL),
        ("172.18.0.2", "pod0", AddressType.UNICAST),
        ("10.244.0.1", "pod0", AddressType.LOCAL),
        ("10.244.0.1", "pod1", AddressType.UNICAST),  # the table holds the first device's entry
        ("127.5.5.5", None, AddressType.LOCAL),
        ("172.18.255.255", None, AddressType.BROADCAST),
        ("172.18.0.0", None, AddressType.UNICAST),  # since Linux 5.14
        ("127.255.255.255", None, AddressType.BROADCAST),
        ("255.255.255.255", None, AddressType.BROADCAST),
        ("0.0.0.0", None, AddressType.BROADCAST),
        ("0.0.0.9", None, AddressType.UNICAST),  # since Linux 5.3
        ("239.1.1.1", None, AddressType.MULTICAST),
        ("8.8.8.8", None, AddressType.UNICAST),
    ],
)
def test_the_type_of_an_address(text: str, dev: str | None, kind: AddressType) -> None:
    assert router().address_type(ip(text), dev) is kind


def test_the_longest_prefix_wins_and_gateways_are_kept() -> None:
    r = router()
    pod = r.route_input(ip("172.18.0.5"), ip("10.244.0.3"), "eth0")
    assert isinstance(pod, Path)
    assert (pod.dev, pod.via) == ("pod0", None)
    away = r.route_input(ip("10.244.0.3"), ip("8.8.8.8"), "pod0")
    assert isinstance(away, Path)
    assert (away.dev, away.via) == ("eth0", ip("172.18.0.1"))
    link = r.route_input(ip("10.244.0.3"), ip("172.18.0.7"), "pod0")
    assert isinstance(link, Path)
    assert (link.dev, link.via) == ("eth0", None)
    here = r.route_input(ip("10.244.0.3"), ip("172.18.0.2"), "pod0")
    assert isinstance(here, Path)
    assert here.local


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        ("127.0.0.1", "10.244.0.3"),
        ("172.18.0.5", "127.0.0.1"),
        ("172.18.0.2", "10.244.0.3"),  # from outside, with the node's own address
        ("224.0.0.5", "10.244.0.3"),
        ("255.255.255.255", "10.244.0.3"),
        ("0.0.0.0", "10.244.0.3"),
        ("172.18.0.5", "239.1.1.1"),
    ],
)
def test_martians_have_no_route(src: str, dst: str) -> None:
    assert router().route_input(ip(src), ip(dst), "eth0") is NoRoute.MARTIAN


def test_route_localnet_lets_loopback_addresses_in_on_that_device_alone() -> None:
    r = router(net__ipv4__conf__eth0__route_localnet="1")
    found = r.route_input(ip("172.18.0.5"), ip("127.0.0.1"), "eth0")
    assert isinstance(found, Path)
    assert found.local
    assert r.route_input(ip("172.18.0.5"), ip("127.0.0.1"), "pod0") is NoRoute.MARTIAN


def test_strict_reverse_path_filtering_wants_the_same_device() -> None:
    r = router(net__ipv4__conf__all__rp_filter="1")
    assert r.route_input(ip("10.244.0.3"), ip("8.8.8.8"), "eth0") is NoRoute.MARTIAN
    assert isinstance(r.route_input(ip("10.244.0.3"), ip("8.8.8.8"), "pod0"), Path)


def test_loose_reverse_path_filtering_wants_any_route() -> None:
    r = router(net__ipv4__conf__pod0__rp_filter="2")
    assert isinstance(r.route_input(ip("9.9.9.9"), ip("8.8.8.8"), "pod0"), Path)


def test_without_forwarding_only_local_destinations_have_a_route() -> None:
    r = router(net__ipv4__ip_forward="0")
    assert r.route_input(ip("10.244.0.3"), ip("8.8.8.8"), "pod0") is NoRoute.NOT_FORWARDING
    assert isinstance(r.route_input(ip("10.244.0.3"), ip("172.18.0.2"), "pod0"), Path)


def test_no_route_at_all() -> None:
    r = Router(Node(interfaces=(Interface("a", (address("10.0.0.1/24"),)),)))
    assert r.route_input(ip("10.0.0.2"), ip("8.8.8.8"), "a") is NoRoute.NET_UNREACHABLE
    assert r.route_output(ip("8.8.8.8")) is NoRoute.FAILED


def test_masquerade_takes_the_address_that_stands_in_the_next_hops_network() -> None:
    r = router()
    assert r.select_address("eth0", ip("172.18.0.1")) == ip("172.18.0.2")
    assert r.select_address("bare", ip("9.9.9.9")) == ip("172.18.0.2")  # any device's
    assert r.select_address(LOOPBACK, ip("127.0.0.1")) == ip("172.18.0.2")
    assert r.select_address("pod0", ip("10.244.0.3")) == ip("10.244.0.1")


def test_a_source_that_is_nobodys_fails_unless_any_will_do() -> None:
    r = router()
    assert r.route_output(ip("8.8.8.8"), ip("9.9.9.9")) is NoRoute.FAILED
    assert isinstance(r.reroute(ip("8.8.8.8"), ip("9.9.9.9")), Path)
    assert isinstance(r.route_output(ip("8.8.8.8"), ip("172.18.0.2")), Path)


def test_a_loopback_source_leaves_only_with_route_localnet() -> None:
    assert router().reroute(ip("8.8.8.8"), ip("127.0.0.1")) is NoRoute.FAILED
    on = router(net__ipv4__conf__all__route_localnet="1")
    assert isinstance(on.reroute(ip("8.8.8.8"), ip("127.0.0.1")), Path)
