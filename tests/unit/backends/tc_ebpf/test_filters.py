"""Filters of other people and our own, as the kernel lists them."""

from __future__ import annotations

import struct

import pytest

from backends.tc_ebpf.filters import PREFERENCES, Filter, Side, read_filter
from backends.testbed.netlink import attribute, attributes, nested
from translate.ir import Family


def listed(kind: str, preference: int, *, name: str = "", handle: int = 1, protocol: int = 0x0800) -> Filter:
    info = preference << 16 | struct.unpack("=H", struct.pack("!H", protocol))[0]
    options = attribute(7, name.encode() + b"\0") + attribute(10, b"\xab" * 8)
    options += attribute(11, struct.pack("=I", 77))
    message = struct.pack("=BxHiIII", 0, 0, 3, handle, Side.INGRESS.value, info)
    found = read_filter(message + attribute(1, kind.encode() + b"\0") + nested(2, options))
    assert found is not None
    return found


def test_what_the_kernel_says_is_read() -> None:
    found = listed("bpf", PREFERENCES[Family.IP], name="nfparity_ingress")
    assert found == Filter(
        index=3,
        side=Side.INGRESS,
        preference=40960,
        protocol=0x0800,
        handle=1,
        kind="bpf",
        name="nfparity_ingress",
        tag="ab" * 8,
        program=77,
    )
    assert found.ours
    assert found.family is Family.IP


@pytest.mark.parametrize(
    ("kind", "preference", "name"),
    [("bpf", 40960, "cilium"), ("bpf", 7, "nfparity_ingress"), ("matchall", 40960, "nfparity_ingress")],
)
def test_what_somebody_else_attached_is_not_ours(kind: str, preference: int, name: str) -> None:
    assert not listed(kind, preference, name=name).ours


def test_who_is_asked_first() -> None:
    every = listed("bpf", 7, protocol=3)
    assert every.runs_before(Family.IP)
    assert every.runs_before(Family.IP6)
    six = listed("bpf", 7, protocol=0x86DD)
    assert six.runs_before(Family.IP6)
    assert not six.runs_before(Family.IP)
    assert not listed("bpf", 50000, protocol=3).runs_before(Family.IP)


def test_the_chain_that_a_filter_is_in_is_no_filter() -> None:
    message = struct.pack("=BxHiIII", 0, 0, 3, 0, Side.EGRESS.value, 40960 << 16)
    assert read_filter(message + attribute(1, b"bpf\0")) is None


def test_attributes_are_read_up_to_one_that_is_cut() -> None:
    assert attributes(attribute(1, b"a") + nested(2, b"bcde")) == {1: b"a", 2: b"bcde"}
    assert attributes(attribute(1, b"a") + struct.pack("=HH", 2, 9)) == {1: b"a"}
