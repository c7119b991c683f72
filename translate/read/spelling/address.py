"""Addresses, prefixes and masks as iptables writes them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from translate.dataclass import dataclass
from translate.ir import Family, Field, FieldTest, Interval, parse_address
from translate.read.spelling.errors import NotModelledError, OptionError
from translate.read.spelling.names import HOSTS
from translate.read.spelling.numbers import unsigned

__all__ = [
    "AddressMask",
    "address_test",
    "parse_address_mask",
    "parse_canonical",
    "parse_host",
    "parse_numeric",
    "parse_prefix_length",
    "parse_resolved",
    "parse_resolved_mask",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressMask:
    """An address and the mask under which it is compared."""

    address: int
    mask: int
    family: Family

    @property
    def is_everything(self) -> bool:
        """True if every address matches (mask 0)."""
        return self.mask == 0

    @property
    def is_prefix(self) -> bool:
        """True if the bits of the mask are the highest ones."""
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


def parse_host(family: Family, text: str, *, option: int) -> int:
    """Return the integer of one address, given by number or by a name of :data:`HOSTS`; raises OptionError.

    The bytes of a dotted form may be in any base, and missing bytes at its end are zero, as in
    ``xtables_numeric_to_ipaddr`` (``10.1`` is 10.1.0.0). Other forms are read by :func:`parse_resolved`
    (``ipparse_hostnetwork``).
    """
    number = _numeric(family, text)
    return parse_resolved(family, text, option=option) if number is None else number


def parse_numeric(family: Family, text: str, *, option: int, offset: int = 0) -> int:
    """Return the integer of one address like :func:`parse_host`, but without names; raises OptionError."""
    number = _numeric(family, text)
    if number is None:
        raise _no_address(family, text, option, offset)
    return number


def parse_canonical(family: Family, text: str, *, option: int, offset: int = 0) -> int:
    """Return the integer of one address in canonical form (``inet_pton``); raises OptionError."""
    try:
        return parse_address(family, text)
    except ValueError:
        raise _no_address(family, text, option, offset) from None


def parse_resolved(family: Family, text: str, *, option: int, offset: int = 0) -> int:
    """Return the integer of one address as ``getaddrinfo`` reads it; raises OptionError.

    Here ``10.1`` is 10.0.0.1: the last number fills all remaining bytes (inet_aton(3)).
    """
    try:
        return parse_address(family, HOSTS.get((family, text), text))
    except ValueError:
        pass
    parts = text.split(".") if family is Family.IP and len(text) < 64 else []
    numbers = [unsigned(part, _ALL) if part[:1].isdigit() and part.isascii() else None for part in parts]
    if not 1 <= len(numbers) <= 4 or None in numbers:
        raise _no_address(family, text, option, offset)
    *heads, last = (number or 0 for number in numbers)
    if any(head > 255 for head in heads) or last >> 8 * (4 - len(heads)):
        raise _no_address(family, text, option, offset)
    return sum(head << 8 * (3 - at) for at, head in enumerate(heads)) + last


def parse_address_mask(family: Family, text: str, *, option: int) -> AddressMask:
    """Return ``address``, ``address/length`` or ``address/mask`` of ``-s`` and ``-d``; raises OptionError.

    With a mask of zero bits the address is not parsed (``xtables_ipparse_multiple``).
    """
    host_text, slash, mask_text = text.rpartition("/") if "/" in text else (text, "", "")
    if not slash:
        address = parse_host(family, host_text, option=option)
        return AddressMask(address=address, mask=(1 << family.bits) - 1, family=family)
    mask = _mask(family, mask_text)
    address = parse_host(family, host_text, option=option) if mask != 0 else 0
    if isinstance(mask, str):
        raise OptionError(mask, option=option, offset=len(host_text) + 1)
    return AddressMask(address=address, mask=mask, family=family)


def parse_resolved_mask(family: Family, text: str, *, option: int) -> AddressMask:
    """Return an address of a connection with its mask (``xtopt_parse_hostmask``); raises OptionError.

    Raises NotModelledError for a mask that is not a prefix. iptables 1.8.9 takes it for the mask of a single
    address (``xtopt_parse_mask`` counts its bits, which fails for such a mask), 1.8.11 takes it as it is.
    """
    host_text, slash, mask_text = text.partition("/")
    address = parse_resolved(family, host_text, option=option)
    if not slash:
        return AddressMask(address=address, mask=(1 << family.bits) - 1, family=family)
    after = len(host_text) + 1
    length = unsigned(mask_text, family.bits)
    if length is not None:
        full = (1 << family.bits) - 1
        return AddressMask(address=address, mask=full ^ (full >> length), family=family)
    mask = parse_resolved(family, mask_text, option=option, offset=after)
    masked = AddressMask(address=address, mask=mask, family=family)
    if not masked.is_prefix:
        what = f'the mask "{mask_text}", whose meaning depends on the version of iptables,'
        hint = "a prefix length means the same in every version"
        raise NotModelledError(what, option=option, offset=after, hint=hint)
    return masked


def parse_prefix_length(family: Family, text: str, *, option: int) -> int:
    """Return a prefix length, which may be written as a mask (``xtopt_parse_plenmask``)."""
    if any(sign in text for sign in ".:"):
        mask = parse_numeric(family, text, option=option)
        length = mask.bit_count()
        if mask == (1 << family.bits) - (1 << (family.bits - length)):
            return length
        raise OptionError(f'"{text}" is not a prefix length or mask', option=option)
    number = unsigned(text, family.bits)
    if number is None:
        raise OptionError(f'"{text}" is not a number from 0 to {family.bits}', option=option)
    return number


def _numeric(family: Family, text: str) -> int | None:
    try:
        return parse_address(family, text)
    except ValueError:
        if family is Family.IP6:
            return None
    parts = text.split(".", 3)
    numbers = [unsigned(part, 255) for part in parts]
    if None in numbers or len(text) > _LONGEST:
        return None
    return sum((number or 0) << 8 * (3 - at) for at, number in enumerate(numbers))


_LONGEST: Final = 19  # char buf[20] of __numeric_to_ipaddr
_ALL: Final = 0xFFFFFFFF


def _no_address(family: Family, text: str, option: int, offset: int) -> OptionError:
    other = Family.IP6 if family is Family.IP else Family.IP
    hint = "host names are not looked up; write the address"
    if (other is Family.IP6 and ":" in text) or (other is Family.IP and text[:1].isdigit()):
        hint = f"is the file for IPv{other.version}?"
    message = f'"{text}" is not an IPv{family.version} address'
    return OptionError(message, option=option, offset=offset, hint=hint)


@lru_cache(maxsize=256)
def _mask(family: Family, text: str) -> int | str:
    """Return the mask after the slash, or a message about its fault."""
    mask = _numeric(family, text) if family is Family.IP6 or text.count(".") == 3 else None
    if mask is not None:
        return mask
    length = unsigned(text, 1 << 32)
    if length is None:
        return f'"{text}" is neither a prefix length nor a mask'
    if length > family.bits:
        return f"prefix length {length} exceeds {family.bits}"
    full = (1 << family.bits) - 1
    return full ^ (full >> length)


def address_test(family: Family, field: Field, text: str, *, negated: bool, option: int) -> FieldTest | None:
    """Return the test of an address option, or None if every packet passes.

    A negated ``/0`` never holds (``ip_packet_match``) and becomes a test that is always false.
    """
    parsed = parse_address_mask(family, text, option=option)
    if parsed.is_everything and not negated:
        return None
    return parsed.test(field, negated=negated)
