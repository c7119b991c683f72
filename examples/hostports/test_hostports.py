"""Tests of hostports.iptables-save: each runs on the simulator and on every backend that this machine has."""

import pytest

from nfparity.api import Reply

NODE = {"eth0": "192.0.2.1/24", "cni0": "10.0.0.1/24"}


@pytest.fixture
def node(load_rules):
    return load_rules("hostports.iptables-save", NODE)


def test_clients_reach_the_host_port(node):
    request, answer = node.exchange("tcp 192.0.2.9:40000 > 192.0.2.1:80 in eth0", Reply())
    assert (request.dst, request.out) == ("10.0.0.7:8080", "cni0")
    assert (answer.src, answer.dst, answer.out) == ("192.0.2.1:80", "192.0.2.9:40000", "eth0")


def test_a_pod_reaches_itself_through_the_host_port(node):
    packet = node.send("tcp 10.0.0.7:40000 > 192.0.2.1:80 in cni0")
    assert packet.dst == "10.0.0.7:8080"
    assert packet.src == "10.0.0.1:40000"


def test_other_ports_are_the_nodes_own(node):
    assert node.send("tcp 192.0.2.9:40000 > 192.0.2.1:81 in eth0").verdict == "local"


def test_pods_cannot_be_reached_directly(node):
    assert node.send("tcp 192.0.2.9:40000 > 10.0.0.8:8080 in eth0").verdict == "drop"


def test_pods_leave_with_the_address_of_the_node(node):
    packet = node.send("udp 10.0.0.8:5000 > 192.0.2.53:53 in cni0")
    assert packet.src == "192.0.2.1:5000"
