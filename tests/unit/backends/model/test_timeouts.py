"""Conntrack's timeouts, as a node's sysctls decide them."""

from __future__ import annotations

import struct

import pytest

from backends.model.node import Interface, Node
from backends.model.timeouts import TIMEOUT_DEFAULTS, timeouts_of
from backends.tc_ebpf.node.facts import settings_of, tai_lead
from translate.bpf import runtime_types
from translate.errors import InputError
from translate.ir import Family

PREFIX = "net.netfilter.nf_conntrack_"


def node(**sysctls: str) -> Node:
    return Node((Interface("eth0"),), sysctls={PREFIX + name: value for name, value in sysctls.items()})


def test_netfilters_defaults() -> None:
    found = timeouts_of(node())
    assert found.tcp == (120, 120, 60, 432000, 120, 60, 30, 120, 10, 120)
    assert (found.udp, found.udp_stream, found.icmp, found.icmpv6, found.generic) == (30, 120, 30, 30, 600)


def test_every_sysctl_decides_something() -> None:
    plain = timeouts_of(node())
    for name in TIMEOUT_DEFAULTS:
        assert timeouts_of(node(**{name: "7"})) != plain, name


@pytest.mark.parametrize("value", ["", "soon", "-1", "1.5", "4294967296"])
def test_what_is_not_a_number_of_seconds(value: str) -> None:
    with pytest.raises(InputError, match=r"nf_conntrack_udp_timeout: .* is not a number of seconds"):
        timeouts_of(node(udp_timeout=value))


def test_the_program_has_every_timeout_in_its_settings() -> None:
    """Each member has its own value, and none is left out; ``icmp`` is that of the family."""
    numbers = {name: str(n) for n, name in enumerate(TIMEOUT_DEFAULTS, 100)}
    given = timeouts_of(node(**numbers))
    packed = settings_of(node(**numbers), Family.IP6)
    settings = runtime_types(Family.IP6).structures["settings"]
    values = {
        declarator.name: struct.unpack_from(f"={declarator.count}I", packed, offset)
        for declarator, offset in settings.offsets
    }
    assert len(packed) == settings.size
    assert values.pop("tcp_timeout") == given.tcp
    assert values.pop("icmp") == (given.icmpv6,)
    assert values.pop("tai_lead") == (tai_lead(),)
    assert [values.pop(name) for name in ("tcp_loose", "tcp_liberal", "checksum")] == [(1,), (0,), (1,)]
    assert values.pop("tcp_ignore_invalid_rst") == (0,)
    assert values == {name: (getattr(given, name),) for name in values}
