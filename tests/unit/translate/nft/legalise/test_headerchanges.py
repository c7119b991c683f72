"""Rules for changes of TOS and TTL, value by value."""

from __future__ import annotations

import pytest

from translate.ir import AddTtl, Family, Field, SetTos, SetTtl
from translate.nft.legalise.headerchanges import HeaderChange, Step, is_single, steps
from translate.nft.printer.statements import statement


def after(step: Step, tos: int, ttl: int) -> tuple[int, int]:
    """Return TOS and TTL behind a step."""
    if not isinstance(step, tuple):
        match step:
            case SetTos(value=value, mask=mask):
                return tos & ~mask ^ value, ttl
            case SetTtl(value=value):
                return tos, value
        raise AssertionError(step)
    for (test,), change in step:
        old = tos if test.field is Field.TOS else ttl
        if any((old if test.mask is None else old & test.mask) in value for value in test.values):  # type: ignore[operator]  # intervals
            return after(change, tos, ttl)
    return tos, ttl


@pytest.mark.parametrize("family", Family)
@pytest.mark.parametrize(
    ("value", "mask"),
    [
        (0x10, 0xFF),
        (0xB8, 0xFC),
        (2, 3),
        (0x10, 0x3F),
        (0x55, 0x0F),
        (1, 0),
        (0, 0),
        (0, 0xED),
        (0xFF, 0x01),
        (3, 0xFC),
    ],
)
def test_every_tos_becomes_what_the_kernel_makes_of_it(value: int, mask: int, family: Family) -> None:
    for old in range(256):
        tos = old
        for step in steps(SetTos(value, mask), family):
            tos, _ = after(step, tos, 64)
        assert tos == old & ~mask ^ value


@pytest.mark.parametrize("number", [1, -1, 5, -255, 255, 200])
def test_every_ttl_stays_from_0_to_255(number: int) -> None:
    for old in range(256):
        (step,) = steps(AddTtl(number), Family.IP)
        assert after(step, 0, old) == (0, min(max(old + number, 0), 255))


@pytest.mark.parametrize(
    ("change", "four", "six"),
    [
        (SetTos(0xB8, 0xFC), ["ip dscp set 0x2e"], ["ip6 dscp set 0x2e"]),
        (SetTos(2, 3), ["ip ecn set 0x2"], ["ip6 ecn set 0x2"]),
        (
            SetTos(0x11, 0xFF),
            ["ip dscp set 0x4", "ip ecn set 0x1"],
            ["ip6 dscp set 0x4", "ip6 ecn set 0x1"],
        ),
        (SetTos(0, 0), [], []),
        (SetTos(0x10, 0x3F), None, ["@nh,0,16 set @nh,0,16 & 0xfc0f @nh,0,16 set @nh,0,16 ^ 0x100"]),
        (SetTos(1, 0), None, ["@nh,0,16 set @nh,0,16 ^ 0x10"]),
        (SetTtl(5), ["ip ttl set 5"], ["ip6 hoplimit set 5"]),
        (AddTtl(1), None, None),
    ],
)
def test_statements(change: HeaderChange, four: list[str] | None, six: list[str] | None) -> None:
    for family, expected in ((Family.IP, four), (Family.IP6, six)):
        assert is_single((change,), family) is (expected is not None)
        if expected is not None:
            made = [statement(s, family, {}) for s in steps(change, family) if not isinstance(s, tuple)]
            assert made == expected
