"""Addresses, prefixes and masks as iptables writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from translate.ir import Family, Field, FieldTest, Interval, parse_address
from translate.read.declaration import OptionError
from translate.read.names import HOSTS

__all__ = ["AddressMask", "address_test", "parse_address_mask", "parse_host"]


_SHORT: Final = re.compile(r"(0|[1-9][0-9]{0,2})(\.(0|[1-9][0-9]{0,2})){0,2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressMask:
    """An address and the mask under which it is compared."""

    address: int
    mask: int
    family: Family

    @property
    def is_everything(self) -> bool:
        """Whether every address matches (mask 0)."""
        return self.mask == 0

    @property
    def is_prefix(self) -> bool:
        """Whether the mask's bits are the highest ones."""
        gap = self.mask ^ ((1 << self.family.bits) - 1)
        return gap & (gap + 1) == 0

    def test(self, field: Field, *, negated: bool) -> FieldTest:
        """Return the test of ``field``: an interval for a prefix, otherwise a masked point."""
        bits = self.family.bits
        full = (1 << bits) - 1
        host = full ^ self.mask
        if host & (host + 1) == 0:
            low = self.address & self.mask
            return FieldTest(field=field, values=(Interval(low, low | host),), negated=negated)
        value = Interval.point(self.address & self.mask)
        return FieldTest(field=field, values=(value,), mask=self.mask, negated=negated)


def parse_host(family: Family, text: str, *, option: int, offset: int = 0) -> int:
    """Return the integer of one address; raises OptionError.

    A dotted form with fewer than four parts is filled with zeros at the right, as
    ``xtables_numeric_to_ipaddr`` does (``10.1`` is 10.1.0.0). Names are not looked up, but for
    the few of :data:`translate.read.names.HOSTS`.
    """
    try:
        return parse_address(family, text)
    except ValueError:
        pass
    known = HOSTS.get((family, text), "/")
    if "/" not in known:
        return parse_address(family, known)
    if family is Family.IP and _SHORT.fullmatch(text):
        numbers = [int(part) for part in text.split(".")]
        if max(numbers) <= 255:
            return int.from_bytes(bytes(numbers), "big") << 8 * (4 - len(numbers))
    other = Family.IP6 if family is Family.IP else Family.IP
    hint = "host names are not looked up; write the address"
    if (other is Family.IP6 and ":" in text) or (other is Family.IP and text[:1].isdigit()):
        hint = f"is the file for IPv{other.version}?"
    raise OptionError(
        f'"{text}" is not an IPv{family.version} address', option=option, offset=offset, hint=hint
    )


def parse_address_mask(family: Family, text: str, *, option: int) -> AddressMask:
    """Return ``address``, ``address/length`` or ``address/mask``; raises OptionError."""
    text = HOSTS.get((family, text), text)
    host_text, slash, mask_text = text.partition("/")
    address = parse_host(family, host_text, option=option)
    if not slash:
        return AddressMask(address=address, mask=(1 << family.bits) - 1, family=family)
    try:
        mask = _mask(family, mask_text)
    except ValueError as error:
        raise OptionError(str(error), option=option, offset=len(host_text) + 1) from None
    return AddressMask(address=address, mask=mask, family=family)


@lru_cache(maxsize=256)
def _mask(family: Family, text: str) -> int:
    """Return the mask that stands behind the slash; raises ValueError with what is wrong."""
    if text.isascii() and text.isdigit() and len(text) <= 3:
        length = int(text)
        if length > family.bits:
            raise ValueError(f"prefix length {length} is over {family.bits}")
        full = (1 << family.bits) - 1
        return full ^ (full >> length)
    try:
        return parse_address(family, text)
    except ValueError:
        raise ValueError(f'"{text}" is neither a prefix length nor a mask') from None


def address_test(family: Family, field: Field, text: str, *, negated: bool, option: int) -> FieldTest | None:
    """Return the test of an address option, or None when it holds of every packet.

    A negated ``/0`` never holds (``ip_packet_match``); it is kept as a test that says so.
    """
    parsed = parse_address_mask(family, text, option=option)
    if parsed.is_everything and not negated:
        return None
    return parsed.test(field, negated=negated)
