"""kube-ipvs0 has the addresses of services, and nothing else of the node does."""

from __future__ import annotations

from backends.ipvs.backend import own_addresses, with_device, without_device
from backends.ipvs.loader import DEVICE
from backends.model.ipvs import read_table
from backends.model.node import Address, Interface, Node
from translate.ir import Family, format_address, parse_address

TABLE = read_table("-A -t 10.96.0.1:443 -s rr\n-A -t 192.0.2.1:30080 -s rr\n", name="ipvs-save")


def address(text: str) -> Address:
    return Address(Family.IP, parse_address(Family.IP, text), 24)


NODE = Node((Interface("eth0", (address("192.0.2.1"),)),))


def test_a_device_that_is_not_listed_has_the_addresses_that_no_other_device_has() -> None:
    node = with_device(NODE, TABLE)
    device = node.interface(DEVICE)
    assert device is not None
    assert [format_address(Family.IP, a.value) for a in device.addresses] == ["10.96.0.1"]
    assert "kube-ipvs0 with the 1 addresses" in node.assumed[-1]
    assert own_addresses(node, Family.IP) == {address("192.0.2.1").value}


def test_a_listed_device_stays_as_it_is() -> None:
    node = Node((*NODE.interfaces, Interface(DEVICE, (address("10.96.0.9"),))))
    assert with_device(node, TABLE) == node


def test_kube_proxy_deletes_the_device_when_it_leaves_the_mode() -> None:
    assert without_device(with_device(NODE, TABLE)).interfaces == NODE.interfaces
