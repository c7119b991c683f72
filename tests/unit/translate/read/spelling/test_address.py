from __future__ import annotations

import pytest

from translate.ir import Family, Field, FieldTest, Interval
from translate.read.spelling.address import (
    address_test,
    parse_address_mask,
    parse_canonical,
    parse_host,
    parse_numeric,
    parse_resolved,
    parse_resolved_mask,
)
from translate.read.spelling.errors import NotModelledError, OptionError

IP, IP6 = Family.IP, Family.IP6


def test_missing_bytes_are_at_the_end_for_iptables_and_in_the_middle_for_getaddrinfo() -> None:
    assert parse_host(IP, "10.1", option=0) == 0x0A010000
    assert parse_resolved(IP, "10.1", option=0) == 0x0A000001


def test_host_names_are_only_those_that_every_machine_has() -> None:
    assert parse_host(IP, "localhost", option=0) == 0x7F000001
    assert parse_host(IP6, "localhost", option=0) == 1
    with pytest.raises(OptionError) as fault:
        parse_host(IP, "example.org", option=2)
    assert fault.value.option == 2
    assert fault.value.hint == "host names are not looked up; write the address"
    with pytest.raises(OptionError):
        parse_numeric(IP, "localhost", option=0)


@pytest.mark.parametrize(("family", "text"), [(IP, "fd00::1"), (IP6, "10.0.0.1")])
def test_an_address_of_the_other_family_is_named(family: Family, text: str) -> None:
    with pytest.raises(OptionError) as fault:
        parse_canonical(family, text, option=0)
    assert fault.value.hint == f"is the file for IPv{6 if family is IP else 4}?"


@pytest.mark.parametrize(
    ("text", "mask"),
    [("10.0.0.0/8", 0xFF000000), ("10.0.0.0/255.0.255.0", 0xFF00FF00), ("10.0.0.1", 0xFFFFFFFF), ("x/0", 0)],
)
def test_masks(text: str, mask: int) -> None:
    assert parse_address_mask(IP, text, option=0).mask == mask


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("10.0.0.0/33", "prefix length 33 exceeds 32", 9),
        ("10.0.0.0/x", '"x" is neither a prefix length nor a mask', 9),
        ("300.0.0.0/8", '"300.0.0.0" is not an IPv4 address', 0),
    ],
)
def test_faults_are_pointed_at(text: str, message: str, offset: int) -> None:
    with pytest.raises(OptionError) as fault:
        parse_address_mask(IP, text, option=0)
    assert (fault.value.message, fault.value.offset) == (message, offset)


def test_a_mask_that_is_no_prefix_depends_on_the_version_of_iptables() -> None:
    assert parse_resolved_mask(IP, "10.0.0.1/255.255.0.0", option=0).mask == 0xFFFF0000
    with pytest.raises(NotModelledError) as fault:
        parse_resolved_mask(IP, "10.0.0.1/255.0.255.0", option=0)
    assert (fault.value.message, fault.value.offset) == (
        'the mask "255.0.255.0", whose meaning depends on the version of iptables,',
        9,
    )


def test_a_test_of_an_address() -> None:
    assert address_test(IP, Field.SADDR, "0.0.0.0/0", negated=False, option=0) is None
    assert address_test(IP, Field.SADDR, "10.1.2.3/8", negated=True, option=0) == FieldTest(
        field=Field.SADDR, values=(Interval(0x0A000000, 0x0AFFFFFF),), negated=True
    )
    never = address_test(IP, Field.SADDR, "0.0.0.0/0", negated=True, option=0)
    assert never == FieldTest(field=Field.SADDR, values=(Interval(0, 0xFFFFFFFF),), negated=True)
    gap = address_test(IP, Field.SADDR, "10.1.2.3/255.0.255.0", negated=False, option=0)
    assert gap == FieldTest(field=Field.SADDR, values=(Interval.point(0x0A000200),), mask=0xFF00FF00)
