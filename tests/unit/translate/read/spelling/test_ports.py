from __future__ import annotations

import pytest

from translate.ir import Interval
from translate.read.spelling.errors import OptionError
from translate.read.spelling.ports import (
    NatPortRange,
    PortRange,
    parse_nat_ports,
    parse_port,
    parse_port_range,
    parse_resolved_range,
)


def test_a_port_is_a_number_in_any_base_or_a_name() -> None:
    assert [parse_port(text, option=0) for text in ("80", "0x50", "0120", "http")] == [80] * 4


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("80", 80, 80), ("1:5", 1, 5), (":5", 0, 5), ("5:", 5, 65535), (":", 0, 65535), ("ssh:telnet", 22, 23)],
)
def test_a_range_of_a_tcp_match(text: str, low: int, high: int) -> None:
    assert parse_port_range(text, option=0) == Interval(low, high)


@pytest.mark.parametrize(("text", "offset"), [("1:x", 2), ("x:1", 0), ("65536", 0), ("9:1", 0), ("", 0)])
def test_the_faulty_part_of_a_range_is_pointed_at(text: str, offset: int) -> None:
    with pytest.raises(OptionError) as fault:
        parse_port_range(text, option=3)
    assert (fault.value.option, fault.value.offset) == (3, offset)


def test_leading_zeros_of_a_udp_port_are_decimal_as_getaddrinfo_reads_them() -> None:
    assert parse_resolved_range("010", option=0) == PortRange(10, 10)
    assert parse_port_range("010", option=0) == Interval.point(8)


def test_a_udp_range_that_ends_before_it_begins_has_no_ports() -> None:
    ports = parse_resolved_range("9:1", option=0)
    assert ports.low > ports.high
    with pytest.raises(OptionError) as fault:
        parse_resolved_range("65537", option=0)
    assert fault.value.hint == "iptables would read it as 1"


@pytest.mark.parametrize(
    ("text", "ports"),
    [
        ("80", NatPortRange(Interval.point(80))),
        ("http", NatPortRange(Interval.point(80))),
        ("1-5", NatPortRange(Interval(1, 5))),
        ("1-5/http", NatPortRange(Interval(1, 5), 80)),
    ],
)
def test_ports_of_a_nat_target(text: str, ports: NatPortRange) -> None:
    assert parse_nat_ports(text, option=0) == ports


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("1:5", 'unexpected ":5" after the port', 1),
        ("1-http", '"http" is not a port', 2),
        ("5-1", 'port range "5-1" ends before it begins', 0),
        ("1-5x", 'unexpected "x" after the ports', 3),
        ("1-5/0", "port 0 cannot be the base", 4),
    ],
)
def test_faults_of_a_nat_target(text: str, message: str, offset: int) -> None:
    with pytest.raises(OptionError) as fault:
        parse_nat_ports(text, option=0)
    assert (fault.value.message, fault.value.offset) == (message, offset)
